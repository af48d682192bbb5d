package fetch

import (
	"errors"
	"net/http"

	"github.com/amble-crawler/amble/internal/web/weburl"
)

// Signer proves to servers who sends a request. It is safe for concurrent use, and does not block.
type Signer interface {
	// Sign returns the fields that prove it to the origin of u; none: the request goes without. They are never
	// archived: until they expire, whoever has them could send them too.
	Sign(u weburl.URL) []Header
	// Answered takes the status and the header of the response to a request. It reports whether the request is to be
	// repeated, because the origin asks for a signature that this one did not have. It says so once in a while and not
	// each time: the response after that counts.
	Answered(u weburl.URL, signed bool, status int, header http.Header) (again bool)
}

// errSignatureAsked is a response that only asks who sends the request.
var errSignatureAsked = errors.New("the server asks for a signature; the next request has it")

// sign appends what the signer adds to a request, and reports whether it is signed.
func (c *Client) sign(u weburl.URL, fields []field) (_ []field, signed bool) {
	if c.o.Signer == nil {
		return fields, false
	}
	added := c.o.Signer.Sign(u)
	for _, h := range added {
		fields = append(fields, field{name: h.Name, value: h.Value, secret: true})
	}
	return fields, len(added) > 0
}

// asksSignature reports whether a response only asks for a signature.
func (c *Client) asksSignature(u weburl.URL, signed bool, resp *http.Response) bool {
	return c.o.Signer != nil && c.o.Signer.Answered(u, signed, resp.StatusCode, resp.Header)
}
