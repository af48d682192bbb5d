package sweep

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// settingValues are the values of the settings that decide about URLs, by setting, as the store
// keeps them. They are compared with those in force at the start of a run, and when settings change
// during one. If one has become more generous, a retry puts back the URLs whose reason may be gone.
// Values that a store of an earlier version did not keep lift nothing.
type settingValues map[string]string

// MarkSettings is the name of their mark: one JSON object.
const MarkSettings = "decided"

// Kept is the settings that the store keeps. The zero value is those of a store that keeps none.
type Kept struct{ values settingValues }

// Restore takes over the value of the mark; empty: there is none.
func (k *Kept) Restore(mark []byte) error {
	if len(mark) == 0 {
		return nil
	}
	if err := json.Unmarshal(mark, &k.values); err != nil {
		return fmt.Errorf("mark %s: %w: %w", MarkSettings, storage.ErrCorrupt, err)
	}
	return nil
}

// valuesOf returns those in force.
func valuesOf(lifts []Lift) settingValues {
	v := make(settingValues, len(lifts))
	for i := range lifts {
		v[lifts[i].setting] = lifts[i].value
	}
	return v
}

// lifted returns the settings that have become more generous since and decide about URLs in states
// that there are, and the failures of robots.txt files that may be gone.
func (v settingValues) lifted(lifts []Lift, c storage.Counters) (settings []string, failures []robots.Failure) {
	for i := range lifts {
		l := &lifts[i]
		before, known := v[l.setting]
		if !known || before == l.value || l.looser != nil && !l.looser(before, l.value) {
			continue
		}
		failures = append(failures, liftedRobots(l.setting)...)
		if c.Any(l.states) {
			settings = append(settings, l.setting)
		}
	}
	return settings, failures
}

func (v settingValues) encode() []byte {
	b, _ := json.Marshal(v) // of texts
	return b
}

// Update takes over the values in force, given the counts of URLs by state. If any has changed, it
// returns the value of the mark, the settings that have become more generous and the failures of
// robots.txt files that may be gone; else nil.
func (k *Kept) Update(lifts []Lift, c storage.Counters) (mark []byte, lifted []string, failures []robots.Failure) {
	now := valuesOf(lifts)
	if maps.Equal(k.values, now) {
		return nil, nil, nil
	}
	lifted, failures = k.values.lifted(lifts, c)
	k.values = now
	return now.encode(), lifted, failures
}

// Values of settings are compared as texts. A list has an item a line; a very long one is a digest.

const longestValue = 4 << 10

func number[N ~uint8 | ~int | ~int64](n N) string { return strconv.FormatInt(int64(n), 10) }

func listed[T any](list []T) string {
	var b strings.Builder
	for i := range list {
		fmt.Fprintf(&b, "%v\n", list[i])
	}
	text := strings.TrimSuffix(b.String(), "\n")
	if len(text) > longestValue {
		return digestOf(text)
	}
	return text
}

const digestPrefix = "sha256:"

func digestOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return digestPrefix + hex.EncodeToString(sum[:])
}

// fileDigest is that of a file's content. A file that cannot be read ends the start elsewhere.
func fileDigest(name string) string {
	content, err := os.ReadFile(name)
	if name == "" || err != nil {
		return ""
	}
	return digestOf(string(content))
}

// becomes reports whether a value is this one now.
func becomes(value string) func(before, after string) bool {
	return func(_, after string) bool { return after == value }
}

// grows compares numbers.
func grows(before, after string) bool {
	a, err := strconv.ParseInt(before, 10, 64)
	b, err2 := strconv.ParseInt(after, 10, 64)
	return err == nil && err2 == nil && b > a
}

// gains reports whether a list has an item that it did not have.
func gains(before, after string) bool {
	if strings.HasPrefix(before, digestPrefix) || strings.HasPrefix(after, digestPrefix) {
		return true
	}
	had := strings.Split(before, "\n")
	isNew := func(item string) bool { return !slices.Contains(had, item) }
	return after != "" && slices.ContainsFunc(strings.Split(after, "\n"), isNew)
}

func loses(before, after string) bool { return gains(after, before) }

// opens is gains for a list that means all if it is empty.
func opens(before, after string) bool { return before != "" && (after == "" || gains(before, after)) }
