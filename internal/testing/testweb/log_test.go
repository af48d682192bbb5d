package testweb

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
)

func newResponse() *httptest.ResponseRecorder { return httptest.NewRecorder() }

func newRequest(t *testing.T) *http.Request {
	t.Helper()
	return httptest.NewRequest(http.MethodGet, "http://a.test/", nil)
}

// request returns a request to "host/path" from start to end, in seconds.
func request(host, path string, start, end int) Request {
	zero := time.Unix(1_000_000, 0)
	return Request{
		Host: host, Path: path, Address: "127.0.0.1", Done: true,
		Start: zero.Add(time.Duration(start) * time.Second), End: zero.Add(time.Duration(end) * time.Second),
	}
}

func TestGaps(t *testing.T) {
	for name, c := range map[string]struct {
		log      Log
		want     []int // seconds
		inFlight int
	}{
		"nothing": {nil, nil, 0},
		"one":     {Log{request("a", "/", 0, 1)}, nil, 1},
		"one by one": {Log{request("a", "/", 0, 1), request("a", "/", 3, 5), request("a", "/", 5, 6)},
			[]int{2, 0}, 1},
		"overlap": {Log{request("a", "/", 0, 4), request("a", "/", 3, 5)}, []int{-1}, 2},
		"long over short": {Log{request("a", "/", 0, 9), request("a", "/", 1, 2), request("a", "/", 5, 6)},
			[]int{-8, -4}, 2},
		"three at once": {Log{request("a", "/", 0, 9), request("a", "/", 1, 9), request("a", "/", 2, 3)},
			[]int{-8, -7}, 3},
		"two after a rest": {Log{request("a", "/", 0, 1), request("a", "/", 2, 4), request("a", "/", 3, 4)},
			[]int{1, -1}, 2},
	} {
		var got []int
		for _, gap := range c.log.Gaps() {
			got = append(got, int(gap.Length/time.Second))
		}
		assert.True(t, slices.Equal(got, c.want) && c.log.MaxInFlight() == c.inFlight,
			"%s: gaps %v, in flight %d; want %v and %d", name, got, c.log.MaxInFlight(), c.want, c.inFlight)
	}
}

func TestShortGaps(t *testing.T) {
	log := Log{request("a", "/", 0, 1), request("a", "/x", 3, 4), request("b", "/", 4, 5), request("a", "/y", 5, 6)}
	short := log.Host("a").ShortGaps(2 * time.Second)
	assert.True(t, len(short) == 1 && short[0].Before.Path == "/x" && short[0].After.Path == "/y",
		"gaps under 2s: %+v, want the one between /x and /y", short)
	assert.Equal(t, len(log.Address("127.0.0.1").ShortGaps(time.Second)), 2, "gaps under 1s at the address")
	assert.True(t, slices.Equal(log.Hosts(), []string{"a", "b"}) &&
		slices.Equal(log.Addresses(), []string{"127.0.0.1"}), "hosts %v, addresses %v", log.Hosts(), log.Addresses())
}

func TestBeforeRobots(t *testing.T) {
	log := Log{
		request("late", "/x", 0, 1),
		request("good", "/robots.txt", 0, 1),
		request("never", "/", 0, 1),
		request("hasty", "/robots.txt", 0, 5),
		request("late", "/robots.txt", 1, 2),
		request("good", "/", 2, 3),
		request("hasty", "/early", 3, 9),
		request("late", "/y", 3, 4),
		request("mirror", "/files/robots.txt", 3, 4),
		request("hasty", "/in-time", 6, 9),
	}
	var got []string
	for _, q := range log.BeforeRobots() {
		got = append(got, q.Host+q.Path)
	}
	assert.Slice(t, got, []string{"late/x", "never/", "hasty/early"}, "before robots.txt")
}

func TestRepeats(t *testing.T) {
	log := Log{
		request("a", "/robots.txt", 0, 1), request("a", "/robots.txt", 1, 2),
		request("a", "/x", 2, 3), request("a", "/x", 4, 5), request("b", "/x", 4, 5), request("a", "/y", 6, 7),
	}
	got, want := log.Repeats(), map[string]int{"a/x": 2}
	assert.True(t, maps.Equal(got, want), "repeats %v, want %v", got, want)
	assert.Equal(t, log.CountByPath()["a/robots.txt"], 2, "robots.txt counted times")
}
