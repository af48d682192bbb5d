// Package networks knows which addresses are those of delivery networks, from the lists that the
// networks publish. The list is data with a date and a source, and another one may take its place:
// nothing fetches it.
package networks

import (
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// FileName is the name of a list in a data directory that counts instead of the one in the program.
const FileName = "networks.txt"

// MaxBytes is the size of the longest list that is read.
const MaxBytes = 4 << 20

//go:embed ranges.txt
var ranges string

// List finds the delivery network of an address. It is immutable; any goroutine may use it.
type List struct {
	Networks []Network
	of       map[netip.Prefix]uint16 // index of the network, by range
	bits     [2][]int                // the lengths of ranges of IPv4 and IPv6, the longest first
}

// Network is a delivery network.
type Network struct {
	Name   string
	Source string    // where it publishes its ranges
	Date   time.Time // of the list
	Ranges int
}

// Load returns the list of a data directory, or the one in the program if the directory has none.
func Load(dir string) (*List, error) {
	path := filepath.Join(dir, FileName)
	l, err := Read(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return Parse(ranges)
	}
	return l, err
}

// Read reads a list from a file.
func Read(path string) (*List, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("list of delivery networks: %w", err)
	}
	if info.Size() > MaxBytes {
		return nil, fmt.Errorf("list of delivery networks %s: has %d bytes, want at most %d", path, info.Size(),
			MaxBytes)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("list of delivery networks: %w", err)
	}
	l, err := Parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("list of delivery networks %s: %w", path, err)
	}
	return l, nil
}

// Parse returns the list that a text has. The error names its line.
func Parse(text string) (*List, error) {
	l := &List{of: make(map[netip.Prefix]uint16)}
	var used [2][129]bool
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if err := l.add(line, &used); err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
	}
	if len(l.of) == 0 {
		return nil, errors.New("has no ranges")
	}
	for family := range used {
		for bits := 128; bits >= 0; bits-- {
			if used[family][bits] {
				l.bits[family] = append(l.bits[family], bits)
			}
		}
	}
	return l, nil
}

// add adds the head of a network, or ranges of the last one.
func (l *List) add(line string, used *[2][129]bool) error {
	if name, rest, isHead := strings.Cut(line, " | "); isHead {
		source, day, _ := strings.Cut(rest, " | ")
		date, err := time.Parse(time.DateOnly, day)
		switch {
		case err != nil || name == "" || source == "":
			return fmt.Errorf("%.80q, want network | source | day, such as 2026-11-27", line)
		case len(l.Networks) == 1000:
			return errors.New("more than 1000 networks")
		}
		l.Networks = append(l.Networks, Network{Name: name, Source: source, Date: date})
		return nil
	}
	if len(l.Networks) == 0 {
		return errors.New("a range before the first network")
	}
	for word := range strings.FieldsSeq(line) {
		p, err := netip.ParsePrefix(word)
		if err != nil || p != p.Masked() || p.Addr().Is4In6() || p.Bits() < 8 {
			return fmt.Errorf("%.80q, want a range of addresses such as 192.0.2.0/24", word)
		}
		if _, known := l.of[p]; !known {
			l.Networks[len(l.Networks)-1].Ranges++
			l.of[p] = uint16(len(l.Networks) - 1)
		}
		used[family(p.Addr())][p.Bits()] = true
	}
	return nil
}

// Find returns the network of an address, or nil.
func (l *List) Find(a netip.Addr) *Network {
	a = a.Unmap().WithZone("")
	for _, bits := range l.bits[family(a)] {
		if p, err := a.Prefix(bits); err == nil {
			if i, ok := l.of[p]; ok {
				return &l.Networks[i]
			}
		}
	}
	return nil
}

// Has reports whether an address is one of a delivery network.
func (l *List) Has(a netip.Addr) bool { return l.Find(a) != nil }

// family is 0 for IPv4, and 1 for IPv6.
func family(a netip.Addr) int {
	if a.Is4() {
		return 0
	}
	return 1
}
