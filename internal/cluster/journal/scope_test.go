package journal

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/amble-crawler/amble/internal/cluster/journal/records"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/storage"
)

// TestGoldenMessages: messages of these versions are these bytes, and mean the same for ever.
func TestGoldenMessages(t *testing.T) {
	const scope = "01" + "02" + "13" + "68747470733a2f2f612e6578616d706c652f31" +
		"11" + "687474703a2f2f622e6578616d706c652f"
	seeds := plainSeeds("https://a.example/1", "http://b.example/")
	assert.Equal(t, hex.EncodeToString(appendScope(nil, seeds)), scope, "scope seeds")
	got, err := decodeScope(unhex(t, scope))
	assert.True(t, err == nil && reflect.DeepEqual(got, seeds), "scope seeds: %v, %v", got, err)
	const changed = "02" + "02" + "11" + "687474703a2f2f622e6578616d706c652f" + "03" + "7b7d" +
		"11" + "687474703a2f2f632e6578616d706c652f" + "00"
	changes := []storage.SeedRow{{URL: "http://b.example/", Value: []byte("{}")}, {URL: "http://c.example/"}}
	assert.Equal(t, hex.EncodeToString(appendScope(nil, changes)), changed, "changes of seeds")
	if got, err := decodeScope(unhex(t, changed)); err != nil || !reflect.DeepEqual(got, changes) {
		t.Errorf("changes of seeds: %v, %v", got, err)
	}
	for n := range len(scope) / 2 {
		assert.Fails(decodeScope(unhex(t, scope[:2*n])))(t, storage.ErrRecord, n, "bytes of scope seeds")
	}
	assert.Fails(decodeScope(append(unhex(t, scope), 0)))(t, storage.ErrRecord, "scope seeds and a byte")
	all := []storage.Discovery{{
		Found: storage.Found{URL: parse(t, "https://a.example/1"), ViaHost: storage.NoHost, At: someTime()},
		Via:   "https://b.example/",
	}}
	found := must.Get(records.AppendFound(nil, []storage.Found{
		{URL: all[0].Found.URL, ViaHost: 1, At: all[0].Found.At},
	}))(t)
	const via = "01" + "12" + "68747470733a2f2f622e6578616d706c652f"
	for version, head := range map[string]string{"1": "01" + via, "2": "02" + "ac02" + via} {
		b := append(unhex(t, head), found...)
		scope, got, err := decodeDiscoveries(b)
		assert.True(t, err == nil && len(got) == 1 && got[0].Via == all[0].Via &&
			got[0].Found.URL == all[0].Found.URL && scope == map[string]uint64{"1": 0, "2": 300}[version],
			"URLs of version %s: %d, %+v, %v", version, scope, got, err)
		encoded, err := appendDiscoveries(nil, 300, all)
		assert.True(t, version != "2" || err == nil && string(encoded) == string(b), "URLs are %x, %v, want %x",
			encoded, err, b)
	}
}

// plainSeeds are seeds without fields besides their URL.
func plainSeeds(urls ...string) (all []storage.SeedRow) {
	for _, u := range urls {
		all = append(all, storage.SeedRow{URL: u, Value: []byte{}})
	}
	return all
}

func unhex(t testing.TB, text string) []byte {
	t.Helper()
	return must.Get(hex.DecodeString(text))(t)
}

// FuzzScope: a message with scope seeds is refused, or decoded to what is encoded the same.
func FuzzScope(f *testing.F) {
	f.Add(appendScope(nil, plainSeeds("https://a.example/1", "http://b.example/")))
	f.Add(appendScope(nil, []storage.SeedRow{{URL: "https://a.test/", Value: []byte("{}")}, {URL: "http://b.test/"}}))
	f.Add([]byte{scopeVersion + 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		urls, err := decodeScope(b)
		if err != nil {
			assert.True(t, errors.Is(err, storage.ErrRecord) || errors.Is(err, storage.ErrNewer), "%v", err)
			return
		}
		assert.AtMost(t, len(urls), maxScopeSeeds, "URLs")
		if again, err := decodeScope(appendScope(nil, urls)); err != nil || !reflect.DeepEqual(again, urls) {
			t.Errorf("%v, %v, want %v", again, err, urls)
		}
	})
}

// TestScope: whoever claims a shard reads all that was published before, and no more; who follows reads
// what comes after it. A message that is damaged costs itself, one of a newer version is refused.
func TestScope(t *testing.T) {
	s := start(t)
	var urls []storage.SeedRow
	for i := range 2*maxScopeSeeds + 1 {
		urls = append(urls, plainSeeds(fmt.Sprintf("https://host%d.example/", i))...)
	}
	first := must.Get(s.PublishSeeds(t.Context(), urls))(t)
	s.put(t, s.scopeSubject(), []byte{scopeVersion, 1, 9})
	claim := s.claim(t, 1)
	last := must.Get(s.PublishSeeds(t.Context(), urls[:1]))(t)
	read := func(run func(take TakeSeeds) error) (n, damaged int, at uint64, err error) {
		err = run(func(sequence uint64, part []storage.SeedRow, unreadable error) {
			if at = sequence; unreadable != nil {
				damaged++
			}
			n += len(part)
		})
		return n, damaged, at, err
	}
	n, damaged, at, err := read(func(take TakeSeeds) error { return claim.ReadScope(0, take) })
	assert.True(t, err == nil && n == len(urls) && damaged == 1 && at == claim.epoch-1,
		"up to the claim: %d seeds, %d damaged, message %d, %v", n, damaged, at, err)
	ctx, cancel := context.WithCancel(t.Context())
	n, damaged, at, err = read(func(take TakeSeeds) error {
		return s.Seeds(ctx, first, func(sequence uint64, part []storage.SeedRow, unreadable error) {
			if take(sequence, part, unreadable); sequence == last {
				cancel()
			}
		})
	})
	assert.True(t, errors.Is(err, context.Canceled) && n == 1 && damaged == 1 && at == last,
		"what follows: %d seeds, %d damaged, message %d, %v", n, damaged, at, err)
	s.claim(t, 1)
	if _, _, _, err := read(func(take TakeSeeds) error { return claim.ReadScope(last, take) }); err != nil {
		t.Errorf("nothing is missing: %v", err)
	}
	s.put(t, s.scopeSubject(), []byte{scopeVersion + 1})
	_, damaged, _, err = read(func(take TakeSeeds) error { return s.claim(t, 2).ReadScope(last, take) })
	assert.True(t, err == nil && damaged == 1, "a newer version: %d damaged, %v", damaged, err)
}
