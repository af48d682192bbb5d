package maze

import (
	"strconv"
	"strings"
)

// Mark is the prefix of the marks of hosts with mazes. The rest of the name is the host.
const Mark = "maze/"

// Encode returns the value of the mark of a host.
func (b *Branches) Encode(of string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strconv.Itoa(b.least) + "\n" + strings.Join(b.stops[of], "\n")
}

// Restore takes over the marks of a database, by name. If they are of another number of pages, all
// branches are judged again.
func (b *Branches) Restore(marks map[string][]byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for name, value := range marks {
		of, is := strings.CutPrefix(name, Mark)
		least, stops, _ := strings.Cut(string(value), "\n")
		if is && stops != "" && least == strconv.Itoa(b.least) {
			b.stops[of] = strings.Split(stops, "\n")
			b.hasStop.Store(true)
		}
	}
}

// Forget forgets all about a host.
func (b *Branches) Forget(of string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.stops, of)
	delete(b.hosts, of)
}
