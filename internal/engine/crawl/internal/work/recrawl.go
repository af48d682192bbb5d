package work

import (
	"crypto/sha256"
	"encoding/binary"
	"net/http"

	"github.com/amble-crawler/amble/internal/records/digest"
	"github.com/amble-crawler/amble/internal/rules/recrawl"
	"github.com/amble-crawler/amble/internal/web/httpfield"
	"github.com/amble-crawler/amble/storage"
)

// compare decides whether a page is the same as at the last response, and keeps what a response
// without a body leaves out.
func (rd *reading) compare(res *Result, o *storage.Outcome, header http.Header) {
	last := &res.Lease.Head.Last
	res.Page.Fresh, _ = httpfield.Caching{
		CacheControl: header.Get("Cache-Control"), Expires: header.Get("Expires"), Date: header.Get("Date"),
		Age: header.Get("Age"),
	}.Freshness(res.Page.End)
	if at := header.Get("Last-Modified"); at != "" && o.State == storage.Fetched {
		res.Page.Modified, _ = http.ParseTime(at) // zero if it is none
	}
	switch {
	case o.Status == http.StatusNotModified:
		res.Page.Change = recrawl.Same
		o.Digest, o.Simhash, o.Bytes, o.Stamp = last.Digest, last.Simhash, last.Bytes, last.Stamp
		if o.ETag == "" {
			o.ETag = last.ETag
		}
		if o.Modified == "" {
			o.Modified = last.Modified
		}
	case last.Digest == 0:
		res.Page.Change = recrawl.First
	case last.Digest == o.Digest:
		res.Page.Change, o.Simhash = recrawl.Same, last.Simhash
	case recrawl.Similar(last.Simhash, o.Simhash, rd.o.SimilarBits):
		res.Page.Change = recrawl.Same
		o.Simhash = last.Simhash // so that many small changes are one some day
	default:
		res.Page.Change = recrawl.Changed
	}
}

// targetDigest returns what stands for the content of a page that redirects.
func targetDigest(target string) uint64 {
	sum := sha256.Sum256([]byte(target))
	return binary.BigEndian.Uint64(sum[:])
}

// comparesText reports whether the text of a page is compared: its body has changed since the last response.
func (rd *reading) comparesText(res *Result) bool {
	before := res.Lease.Head.Last.Digest
	return rd.o.SimilarBits > 0 && before != 0 && before != shortDigest(res.body)
}

// shortDigest is the part of the digest of a body that the store keeps; 0: there is none.
func shortDigest(of digest.Digest) uint64 { return binary.BigEndian.Uint64(of[:]) }
