package membership

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/amble-crawler/amble/internal/cluster/natsconn"
)

// ErrSettings says that the settings of a node are not those of its cluster.
var ErrSettings = errors.New("other settings than this node")

// agree compares the settings of a node with those of its cluster. The first node writes them. The
// error names each setting that differs, or is ErrReserved.
func (r *registers) agree(ctx context.Context, w writer, settings []setting) error {
	subject := r.names.Subject("settings")
	for {
		m, found, err := r.read(ctx, subject)
		switch {
		case err != nil:
			return fmt.Errorf("read the settings of cluster %s: %w", r.names.Cluster, natsconn.Down(err))
		case found:
			theirs, err := decodeSettings(m.data)
			if err != nil {
				return fmt.Errorf("the settings of cluster %s: %w; use the same version on all nodes",
					r.names.Cluster, err)
			}
			if reason := reservedBy(theirs); reason != nil {
				return fmt.Errorf("join cluster %s: %w", r.names.Cluster, reason)
			}
			if !isOlder(theirs) {
				return r.compare(theirs, settings)
			}
		}
		// Whatever comes of it, what the register holds then is compared.
		if _, result, err := r.write(ctx, subject, encodeSettings(w, settings), m.seq, found); result == unknown {
			select {
			case <-ctx.Done():
				return fmt.Errorf("write the settings of cluster %s: %w", r.names.Cluster, ended(ctx, err))
			case <-time.After(100 * time.Millisecond):
			}
		}
	}
}

// isOlder reports whether settings were written by a version that had several of them in one. The first node of a newer
// version writes its own in their place: the nodes that run have all agreed on them.
func isOlder(settings []setting) bool {
	return slices.ContainsFunc(settings, func(s setting) bool { return s.name == "the rules of URLs" })
}

// compare returns an error that names each setting that differs. Both lists are in the order of the
// names.
func (r *registers) compare(theirs, ours []setting) error {
	if isOlder(theirs) {
		return nil
	}
	var d []string
	for len(theirs) > 0 || len(ours) > 0 {
		switch {
		case len(ours) == 0 || len(theirs) > 0 && theirs[0].name < ours[0].name:
			d = append(d, fmt.Sprintf("%s is %s there and not set here", theirs[0].name, theirs[0].value))
			theirs = theirs[1:]
		case len(theirs) == 0 || ours[0].name < theirs[0].name:
			d = append(d, fmt.Sprintf("%s is not set there and %s here", ours[0].name, ours[0].value))
			ours = ours[1:]
		default:
			if theirs[0].value != ours[0].value {
				d = append(d, fmt.Sprintf("%s is %s there and %s here", ours[0].name, theirs[0].value, ours[0].value))
			}
			theirs, ours = theirs[1:], ours[1:]
		}
	}
	if d == nil {
		return nil
	}
	return fmt.Errorf("cluster %s has %w: %s; use the same settings on all nodes, "+
		"or another cluster.name", r.names.Cluster, ErrSettings, strings.Join(d, "; "))
}
