package frontier

import (
	"testing"
	"time"
)

// TestFinishOfLongDelays: a million URLs at a delay of a day take longer than a time.Duration holds, and such a host still is the slowest.
func TestFinishOfLongDelays(t *testing.T) {
	o := testOptions()
	o.Politeness.Delay = 24 * time.Hour
	f, err := New(o, NewScope(ModeAny, nil, nil), epoch)
	if err != nil {
		t.Fatal(err)
	}
	for id, urls := range map[int]int{1: 1000, 2: 1_000_000} {
		h := plain(id, urls)
		if err := f.Restore(&h, epoch); err != nil {
			t.Fatal(err)
		}
	}
	finish := make(map[int]time.Duration)
	f.Waiting(epoch, func(w View) { finish[w.Left] = w.Finish })
	if finish[1000] < 998*24*time.Hour || finish[1_000_000] <= finish[1000] {
		t.Errorf("1,000 URLs: %v, 1,000,000: %v", finish[1000], finish[1_000_000])
	}
}
