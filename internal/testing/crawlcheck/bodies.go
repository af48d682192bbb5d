package crawlcheck

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

// The sizes of bodies.
const (
	bombBytes   = 32 << 20 // when it is decoded
	endlessMost = 48 << 20 // after which it ends
	mostEndless = 32 << 20
)

// bomb returns what is decoded to a body of bombBytes.
var bomb = sync.OnceValue(func() []byte {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestSpeed) // a level that there is
	_, _ = io.CopyN(w, zeros{}, bombBytes)
	_ = w.Close()
	return b.Bytes()
})

// bodyStations judge whether the crawler survives what a server sends.
func bodyStations() []Station {
	station := func(name, what string, hostile func(h *host) http.Handler) Station {
		return Station{
			Name: "bodies-" + name, Level: Should, Source: "RFC 9110, 17; courtesy",
			Rule: "After " + what + ", the crawler goes on with the other pages of the host.",
			Mend: "Bound the bytes and the time of each response, and treat what is too much as a failure of one page.",
			build: func(h *host) {
				h.open("/~/first", "/~/second", "/~/last")
				h.pages["/"] = h.html(http.StatusOK, "", "/~/hostile", "/~/first", "/~/second", "/~/last")
				h.pages[h.own("/~/hostile")] = hostile(h)
			},
			judge: judgeBody,
		}
	}
	return []Station{
		station("bomb", "a response that is 1,000 times as large when it is decoded", func(*host) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Encoding", "gzip")
				w.Header().Set("Content-Type", "text/html")
				_, _ = w.Write(bomb())
			})
		}),
		station("endless", "a response without end", func(*host) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/html")
				block := bytes.Repeat([]byte("<p>and so on</p>\n"), 4<<10)
				for sent := 0; sent < endlessMost && r.Context().Err() == nil; sent += len(block) {
					if _, err := w.Write(block); err != nil {
						return
					}
				}
			})
		}),
		station("garbage", "a page of random bytes", func(h *host) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				random := rand.NewChaCha8([32]byte{byte(h.lab.o.Seed)})
				noise := make([]byte, 256<<10)
				_, _ = random.Read(noise)
				w.Header().Set("Content-Type", "text/html; charset=utf-16")
				_, _ = w.Write(append([]byte("<html><a href='"), noise...))
			})
		}),
		station("nesting", "a page with 100,000 elements inside each other", func(*host) http.Handler {
			return body(http.StatusOK, string(bytes.Repeat([]byte("<div>"), 100_000)))
		}),
		station("protocol", "a response that is not HTTP", func(h *host) http.Handler {
			return h.patiently(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				c, _, err := http.NewResponseController(w).Hijack()
				if err != nil {
					panic(http.ErrAbortHandler)
				}
				_ = c.SetDeadline(time.Now().Add(5 * time.Second))
				_, _ = io.WriteString(c, "220 mail.example.org ESMTP\r\n\x00\xff\r\n\r\n")
				_ = c.Close()
			}))
		}),
	}
}

// zeros are zero bytes without end.
type zeros struct{}

// Read fills p with zeros.
func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func judgeBody(e *evidence) {
	hostile := e.page(e.host(), "/~/hostile")
	if len(hostile) == 0 {
		e.missing("it never requested the hostile page")
		return
	}
	last := hostile[len(hostile)-1]
	for _, q := range hostile {
		if q.Bytes > mostEndless {
			e.broken(fmt.Sprintf("it took %d MiB of one response", q.Bytes>>20), q)
		}
	}
	over := e.exited || e.quiet || e.web < smallestOf && e.hasStopped(hostile)
	if later := after(e.log, hostile[0].Start); len(later.Pages()) == len(hostile)-1 && over {
		e.broken("it made no further request to the host after the hostile page", last)
	}
	judgePages(e)
}
