// Package archive writes what was fetched in several forms: each is a [Format], with a [Sink] that its records go to.
// The formats of this package are files of JSON lines, as docs/OUTPUT.md describes them. A format of lines is a
// [Lines]; one of other files uses a [Series]; a receiver is a Sink of its own. internal/output/formats lists those of
// the program.
//
// # Exactness
//
// The files contain exactly the pages of committed batches, whatever stops the process. The
// committer does the same four steps for each batch:
//
//	for each page: w.Append(line)
//	marks := w.Sync()           // flushed and synced: the lines survive a power cut from here on
//	commit marks with the batch // in one transaction
//	w.Committed()               // files that are complete get their names
//
// A [Mark] is the end of the part of one format's output that belongs to the crawl: for files a name and a
// length, see [FileMark]. [Open] cuts what lies beyond the committed marks. A failed Append or Sync does so at
// once, so that the batch can be retried from its first line; [Writer.Rollback] does it after a failed commit. If
// it is unknown whether the commit failed, [Writer.Close] leaves the files as they are.
//
// # Files
//
// Files are numbered. The name of the unfinished file ends in ".open". When the file is full and
// its end is committed, it loses that suffix and never changes again, except by an erasure. A mark
// names only the newest file, and says whether it is complete: all complete files may be moved away
// at any time. A file that was once complete is never deleted, cut or reopened. If an older copy of
// the database was put back, and does not have all records of a file, the file is set aside with
// the suffix ".unmarked".
//
// A directory belongs to one crawl at a time; the lock of the crawl's database guards it.
package archive
