package archive

import (
	"fmt"
	"io"
	"time"

	"github.com/amble-crawler/amble/internal/web/spool"
)

// Format is a form of output, for example one of files or a receiver. A format is a package of its own, and one line
// of the list of internal/output/formats.
type Format interface {
	// Name is its name in Options.Formats.
	Name() string
	// Validate returns what it cannot use of the options; nil: nothing.
	Validate(*Options) error
	// Needs returns what NewEncoder's function reads of a Visit, besides its page.
	Needs(*Options) Needs
	// NewEncoder returns what makes the record of a visit; nil: it adds nothing. The function is called concurrently.
	// Records are held in the pool.
	NewEncoder(o *Options, pool *spool.Pool) (func(*Item, *Visit) (*Record, error), error)
	// NewSink returns the place that the records go to.
	NewSink(*Options, Disk) (Sink, error)
	// Naming returns the names of its files, with any settings. Of a format without files, the pattern matches nothing.
	Naming() Naming
}

// Needs says which parts of a Visit are filled in.
type Needs struct {
	Links     bool // of the page
	LinkTexts bool // with their texts
	Text      bool // of the page
	Exchange  bool // the bytes of request and response
}

// Sink is where the records of one format go. A Writer drives several in step, each by one goroutine at a time.
type Sink interface {
	Owns(Mark) bool                     // whether a mark is its own
	Adopt() error                       // begin without a mark
	Restore(*Mark) error                // go back to a committed mark; nil: to the state before the crawl
	Append(*Record, time.Time) error    // it may stay in memory
	Sync() error                        // everything appended survives a power cut
	Mark() (Mark, bool)                 // the end of the last sync; false: there was none
	Revert() error                      // drop what was appended since
	Expire(now time.Time) (bool, error) // complete a file that is too old; true: the mark has moved
	End() (bool, error)                 // drop what was appended since, complete the file; true: the mark has moved
	Committed() error                   // the mark is committed
	LetGo()                             // close what is open
	IsAhead(*Mark) (bool, error)        // whether it certainly has more than was committed before a mark
	SetAsideTail(*Mark) error           // set aside what it has behind a mark
	Aside() []Aside                     // what was set aside
}

// Record is what one visit adds to a sink. It is never divided between two files.
type Record struct {
	Content *spool.Content
	Entry   []byte // for the Index of a Series
	Info    string // the Info.ID that it names

	beside []*Record // those of what the page has caused: they come next
}

// Size returns the number of bytes.
func (r *Record) Size() int64 { return r.Content.Size() }

// each calls f with the record and those beside it, until that fails.
func (r *Record) each(f func(*Record) error) error {
	err := f(r)
	for i := 0; i < len(r.beside) && err == nil; i++ {
		err = f(r.beside[i])
	}
	return err
}

func (r *Record) writeTo(w io.Writer) error {
	_, err := r.Content.WriteTo(w)
	return err
}

// Names returns the names of formats.
func Names(all []Format) (names []string) {
	for _, f := range all {
		names = append(names, f.Name())
	}
	return names
}

// Lines is a format whose files have lines, which are compressed together.
type Lines struct {
	Format    string // its name in Options.Formats
	Prefix    string // of the names of its files, as in "pages-000001.jsonl"
	Extension string // of the names of its files, with the dot
	Uses      Needs
	// Encode returns the lines of a visit with a page, each with its newline; nil: there is none.
	Encode func(*Visit) ([]byte, error)
}

// Name implements Format.
func (l Lines) Name() string { return l.Format }

// Validate implements Format.
func (l Lines) Validate(*Options) error { return nil }

// Needs implements Format.
func (l Lines) Needs(*Options) Needs { return l.Uses }

// Naming implements Format.
func (l Lines) Naming() Naming { return numbered(l.Prefix, l.Extension, "") }

// NewEncoder implements Format.
func (l Lines) NewEncoder(*Options, *spool.Pool) (func(*Item, *Visit) (*Record, error), error) {
	return func(_ *Item, v *Visit) (*Record, error) {
		if v.Page == nil {
			return nil, nil
		}
		lines, err := l.Encode(v)
		if err != nil || lines == nil {
			return nil, err
		}
		return &Record{Content: spool.Of(lines)}, nil
	}, nil
}

// NewSink implements Format.
func (l Lines) NewSink(o *Options, d Disk) (Sink, error) {
	packer, packed, err := newPacker(o.Compress)
	if err != nil {
		return nil, fmt.Errorf("archive: %s: %w", o.Compress, err)
	}
	return NewSeries(o, d, SeriesOptions{Naming: numbered(l.Prefix, l.Extension, packed),
		Extension: l.Extension + packed, Packer: packer}), nil
}
