package server

import (
	"errors"

	"github.com/amble-crawler/amble/internal/output/urllist"
)

// listLine is one line of a list: a URL, or what is wrong with it.
type listLine struct {
	number int
	item   urllist.Item
	bad    *urllist.BadLine
}

// maxLines is the most lines of a group.
const maxLines = 500

// lineReader reads a list in a goroutine of its own, so that its owner notices when the list makes
// a pause.
type lineReader struct {
	groups  chan []listLine // closed at the end
	err     error           // of the end, io.EOF if there is no other; set before groups is closed
	read    int             // lines in all, also those without a URL; set before groups is closed
	stopped chan struct{}
}

// readLines starts reading a list. The caller calls stop.
func readLines(list *urllist.Reader) *lineReader {
	r := &lineReader{groups: make(chan []listLine), stopped: make(chan struct{})}
	go r.run(list)
	return r
}

func (r *lineReader) run(list *urllist.Reader) {
	defer func() {
		r.read = list.Lines()
		close(r.groups)
	}()
	for r.err == nil {
		group := r.next(list)
		if len(group) == 0 {
			continue
		}
		select {
		case r.groups <- group:
		case <-r.stopped:
			return
		}
	}
}

// next reads lines until there are enough, or the next one has not come yet.
func (r *lineReader) next(list *urllist.Reader) (group []listLine) {
	for len(group) < maxLines && (len(group) == 0 || list.Buffered()) {
		item, err := list.Next()
		var bad *urllist.BadLine
		if err != nil && !errors.As(err, &bad) {
			r.err = err
			break
		}
		group = append(group, listLine{number: list.Lines(), item: item, bad: bad})
	}
	return group
}

// stop ends the reading, and waits until nothing reads the body any more.
func (r *lineReader) stop(body *listBody) {
	close(r.stopped)
	for ended := false; !ended; {
		select {
		case _, more := <-r.groups:
			ended = !more
		default:
			body.breakOff()
			_, more := <-r.groups
			ended = !more
		}
	}
}
