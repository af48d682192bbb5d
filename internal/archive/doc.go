// Package archive writes what a crawl fetched to files that other programs read: one JSON object a
// line, described in docs/OUTPUT.md.
//
// # Exactness
//
// The files hold exactly the pages of committed batches, whatever stops the process. The committer
// goes through the same four steps for each batch:
//
//	for each page: w.Append(line)
//	marks := w.Sync()           // flushed and synced: the lines survive a power cut from here on
//	commit marks with the batch // in one transaction
//	w.Committed()               // files that are complete get their names
//
// A [Mark] says up to which byte of which file the output is part of the crawl. [Open] cuts what
// lies beyond the committed marks. A failed Append or Sync does the same at once, so that the batch
// can be tried again from its first line; [Writer.Rollback] does it when the commit failed. Where
// nobody knows whether it failed, [Writer.Close] leaves all as it is.
//
// # Files
//
// Files are numbered. The one being written ends in ".open"; when it is full, and what completed it
// is committed, it loses that suffix and never changes again. Only the newest file is marked, with
// whether it is complete, too: all complete ones may be moved away at any time. Nothing that was
// ever complete is deleted, cut or reopened: where the database does not know of all that is in a
// file, because an older copy of it was put back, the file is set aside with the suffix
// ".unmarked".
//
// A directory belongs to one crawl at a time; the lock of the crawl's database guards it.
package archive
