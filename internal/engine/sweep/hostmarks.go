//go:build !core

package sweep

import (
	"fmt"
	"strings"

	"github.com/amble-crawler/amble/storage"
)

// HostOfMark returns the host that a mark is about, by its name; false: it is about none, or is of
// another package.
func HostOfMark(name string) (host storage.HostID, ok bool) {
	prefix := hostPrefix(name)
	return host, prefix != "" && scanMark(name, prefix, "%d", &host) == nil
}

// hostPrefix returns the prefix of the name of a mark that goes on with the id of a host; empty: there is
// none.
func hostPrefix(name string) string {
	for _, prefix := range []string{
		MarkDelete, MarkRecheck, MarkDrop, MarkOffer, MarkAdopt, MarkWall, MarkCrash,
	} {
		if strings.HasPrefix(name, prefix) {
			return prefix
		}
	}
	return ""
}

// MarkOfHost returns the name of a mark that HostOfMark knows for another id of its host.
func MarkOfHost(name string, host storage.HostID) string {
	prefix := hostPrefix(name)
	rest := strings.TrimLeft(strings.TrimPrefix(name, prefix), "0123456789")
	return fmt.Sprintf("%s%d%s", prefix, host, rest)
}
