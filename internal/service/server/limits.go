package server

import (
	"net/http"
	"net/netip"

	"github.com/amble-crawler/amble/internal/service/listen"
)

// Limits of the requests of one client, and of its requests with a wrong token. After too many
// wrong tokens, right ones are refused for a while too; otherwise guessing could continue.
const (
	requestBurst, requestsPerSecond = 1000, 200
	failureBurst, failuresPerSecond = 20, 1.0 / 6
)

// limitRate refuses clients that send requests too often, or too many wrong tokens.
func (g *guard) limitRate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		client := g.clientOf(r)
		if !g.requests.Allow(client) || r.Header.Get("Authorization") != "" && g.failures.Exhausted(client) {
			writeTooMany(w)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func writeTooMany(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "6")
	WriteProblem(w, http.StatusTooManyRequests, "too many requests, or too many wrong tokens, from your address: "+
		"wait a little")
}

// clientOf returns the network of the client.
func (g *guard) clientOf(r *http.Request) netip.Prefix {
	return listen.ClientOf(r, g.o.BehindProxy)
}
