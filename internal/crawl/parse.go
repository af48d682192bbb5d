package crawl

import (
	"context"
	"net/http"
	"runtime"

	"github.com/amble-crawler/amble/internal/extract"
	"github.com/amble-crawler/amble/internal/spool"
	"github.com/amble-crawler/amble/internal/warc"
	"github.com/amble-crawler/amble/internal/weburl"
)

// maxParse is how many bytes of a document are looked through for links. What
// comes behind them is kept and counted, but not read.
const maxParse = extract.MaxDocument

// parsers are the right to parse, as often as there are cores: the tree of a
// document is many times its size, and more at once would not be faster. Each
// carries a buffer for documents that are in a file.
type parsers chan []byte

func newParsers() parsers {
	n := runtime.GOMAXPROCS(0)
	p := make(parsers, n)
	for range n {
		p <- nil
	}
	return p
}

// html reads a document. It waits for its turn, which does not depend on the
// network; the error is that of the context where the crawl ends before that.
func (r *run) html(
	ctx context.Context, body *spool.Content, header http.Header, base weburl.URL,
) (extract.Page, error) {
	var buf []byte
	select {
	case buf = <-r.parsers:
	case <-ctx.Done():
		return extract.Page{}, ctx.Err()
	}
	defer func() { r.parsers <- buf }()
	text, err := body.Load(buf, maxParse)
	if err != nil {
		return extract.Page{}, err
	}
	if _, inMemory := body.Bytes(); !inMemory {
		buf = text
	}
	return extract.HTML(text, header, base, r.o.Frontier.Tokens, r.o.Extract)
}

// digest is the SHA-256 of a body.
func digest(body *spool.Content) (warc.Digest, error) {
	if b, ok := body.Bytes(); ok {
		return warc.DigestOf(b), nil
	}
	h := warc.NewHash()
	_, err := body.WriteTo(h)
	return warc.Sum(h), err
}
