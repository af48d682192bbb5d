//go:build !core

package identity

import (
	"net/http"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/amble-crawler/amble/internal/rules/wall"
)

// Counts are the responses to requests over https, with a signature and without: whether signing helps, and at which
// walls. It is a prometheus.Collector.
type Counts struct{ *prometheus.CounterVec }

// NewCounts returns counts that are zero.
func NewCounts() Counts {
	return Counts{prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "amble_identity_responses_total",
		Help: "Responses over https, by whether the request was signed, and whether the server refused it; wall " +
			"names the maker of a refusal, as far as its header shows it.",
	}, []string{"signed", "refused", "wall"})}
}

// add counts a response, and returns the maker of the wall that refused it.
func (c Counts) add(signed bool, status int, header http.Header, marks *wall.Marks) (name string) {
	if isRefusal(status) {
		if mark := marks.Find(header, nil); mark.Tier == wall.TierHeader {
			name = marks.Name(mark.Wall)
		}
	}
	if c.CounterVec != nil {
		c.WithLabelValues(strconv.FormatBool(signed), strconv.FormatBool(isRefusal(status)), name).Inc()
	}
	return name
}

// Answers are the responses of an origin to requests of one kind.
type Answers struct {
	Served  uint64 `json:"served"`
	Refused uint64 `json:"refused"` // status 401, 403, 429 or 503
}

func (a *Answers) add(status int) {
	if isRefusal(status) {
		a.Refused++
	} else {
		a.Served++
	}
}

// OriginAnswers says what signing changed at an origin.
type OriginAnswers struct {
	Origin   string  `json:"origin"`
	Asked    bool    `json:"asked"` // it asked for signatures, or showed the mark of a wall
	Unsigned Answers `json:"unsigned"`
	Signed   Answers `json:"signed"`
	Wall     string  `json:"wall,omitempty"` // maker of the last wall that refused, as far as the header showed it
}

// isRefusal reports whether a status says that a server does not answer whoever asks.
func isRefusal(status int) bool {
	return status == http.StatusUnauthorized || status == http.StatusForbidden ||
		status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable
}
