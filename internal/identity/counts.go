package identity

import (
	"net/http"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/amble-crawler/amble/internal/wall"
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

// add counts a response.
func (c Counts) add(signed bool, status int, header http.Header, marks *wall.Marks) {
	if c.CounterVec == nil {
		return
	}
	name := ""
	if isRefusal(status) {
		if mark := marks.Find(header, nil); mark.Tier == wall.TierHeader {
			name = marks.Name(mark.Wall)
		}
	}
	c.WithLabelValues(strconv.FormatBool(signed), strconv.FormatBool(isRefusal(status)), name).Inc()
}

// isRefusal reports whether a status says that a server does not answer whoever asks.
func isRefusal(status int) bool {
	return status == http.StatusUnauthorized || status == http.StatusForbidden ||
		status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable
}
