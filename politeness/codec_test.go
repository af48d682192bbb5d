package politeness

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestStateComesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		instant := func(name string) time.Time {
			if ns := rapid.Int64Range(-1, 4e18).Draw(t, name); ns >= 0 {
				return time.Unix(0, ns).UTC()
			}
			return time.Time{}
		}
		s := State{
			LastEnd: instant("end"), Until: instant("until"), TroubleSince: instant("trouble"),
			Length:       time.Duration(rapid.Int64().Draw(t, "length")),
			CrawlDelay:   time.Duration(rapid.Int64().Draw(t, "crawl delay")),
			LastResponse: time.Duration(rapid.Int64().Draw(t, "response")),
			Reason:       Reason(rapid.Byte().Draw(t, "reason")), Backoff: rapid.Byte().Draw(t, "back-off"),
			Failures: rapid.Byte().Draw(t, "failures"), Calm: rapid.Byte().Draw(t, "calm"),
		}
		got, err := DecodeState(s.Append(nil))
		if err != nil {
			t.Fatal(err)
		}
		for _, pair := range [][2]*time.Time{{&s.LastEnd, &got.LastEnd}, {&s.Until, &got.Until}, {&s.TroubleSince, &got.TroubleSince}} {
			if late := pair[1].Sub(*pair[0]); late < 0 || late >= time.Millisecond {
				t.Fatalf("instant %v came back as %v", *pair[0], *pair[1])
			}
			*pair[0] = *pair[1]
		}
		if got != s {
			t.Fatalf("state %+v came back as %+v", s, got)
		}
	})
}

func TestDecodeStateRefuses(t *testing.T) {
	good := State{Length: time.Second}.Append(nil)
	for name, b := range map[string][]byte{
		"short":         good[:len(good)-1],
		"long":          append(good[:len(good):len(good)], 0),
		"newer version": append([]byte{stateVersion + 1}, good[1:]...),
	} {
		if _, err := DecodeState(b); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
