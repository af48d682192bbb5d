package server

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"

	"github.com/amble-crawler/amble/internal/engine/inspect"
)

// exportOf writes the URLs of all shards, or of that of the host, one shard after the other.
func exportOf(ctx context.Context, d Division, out *rows[inspect.URL], q *exportQuery) error {
	t := out.t
	first, from, err := 0, q.From, error(nil)
	shards := allShards(d)
	if q.Host != "" {
		first = d.ShardOf(q.Host)
		shards = shards[:first+1]
	} else if first, from, err = splitPosition(d, q.From); err != nil {
		return err
	}
	t.w.Header().Set("Trailer", trailerNext)
	left := q.Limit
	for _, shard := range shards[first:] {
		query := map[string]string{"from": from, "limit": limitOf(left)}
		lines, trailer, err := exportShard(ctx, d, shard, query, out.relay)
		if err != nil {
			return err
		}
		next := trailer.Get(trailerNext)
		if left -= lines; next == "" && q.Limit > 0 && left <= 0 && q.Host == "" && shard+1 < d.Shards() {
			shard, next = shard+1, "0.0"
		}
		if next != "" {
			if q.Host == "" {
				next = positionIn(d, shard, next)
			}
			t.w.Header().Set(trailerNext, next)
			return nil
		}
		from = ""
	}
	return nil
}

// exportHostsOf writes the hosts of all shards, one shard after the other.
func exportHostsOf(ctx context.Context, d Division, out *rows[inspect.Host], q *exportHostsQuery) error {
	t := out.t
	t.w.Header().Set("Trailer", trailerMatching)
	left, matching := q.Limit, 0
	for _, shard := range allShards(d) {
		lines, trailer, err := exportShard(ctx, d, shard, map[string]string{"limit": limitOf(left)}, out.relay)
		if err != nil {
			return err
		}
		n, _ := strconv.Atoi(trailer.Get(trailerMatching)) // a shard that has not counted has none
		matching += n
		t.w.Header().Set(trailerMatching, strconv.Itoa(matching))
		if left -= lines; q.Limit > 0 && left <= 0 {
			break
		}
	}
	return nil
}

// limitOf is a limit in a query; empty: there is none.
func limitOf(left int) string {
	if left <= 0 {
		return ""
	}
	return strconv.Itoa(left)
}

// exportShard writes the lines of a shard. If it does not answer the response is broken off.
func exportShard(ctx context.Context, d Division, shard int, query map[string]string,
	copied func(*http.Response) (int, http.Header, error)) (lines int, trailer http.Header, err error) {
	r := asked(ctx)
	query["format"] = ""
	response, err := AskShard(ctx, d, shard, r.with(only(r.URL.Query(), query)))
	if err != nil {
		return 0, nil, err
	}
	lines, trailer, err = copied(response)
	return lines, trailer, OfShard(shard, err)
}

// relay sends the lines of a response on, and returns how many there were, and its trailer.
func relay(t *Stream, response *http.Response) (lines int, trailer http.Header, err error) {
	defer response.Body.Close()
	buffered := bufio.NewReaderSize(response.Body, streamBuffer)
	for {
		line, err := buffered.ReadSlice('\n')
		if len(line) > 0 && line[len(line)-1] == '\n' {
			lines++
		}
		if _, wrong := t.buffer.Write(line); wrong != nil {
			return lines, nil, wrong
		}
		switch {
		case err == io.EOF:
			return lines, response.Trailer, nil
		case err != nil && !errors.Is(err, bufio.ErrBufferFull):
			return lines, nil, err
		}
	}
}

// TrailerIncomplete is the trailer that lists the nodes of a cluster that have not answered to the end.
const TrailerIncomplete = "Amble-Incomplete"
