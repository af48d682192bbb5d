package membership

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/amble-crawler/amble/internal/cluster"
	"github.com/amble-crawler/amble/internal/cluster/natsconn"
)

// Options are those of a [Node].
type Options struct {
	// Cluster are the options of the state machine. [Join] sets Process and, from StateFile,
	// Predecessor.
	Cluster cluster.Options
	// Names are those of the cluster on its servers.
	Names natsconn.Names
	// Replicas is how many servers keep a copy: 1, 3 or 5.
	Replicas int
	// Settings are the other settings that all nodes have to agree on, by name. They are compared
	// when a node joins.
	Settings map[string]string
	// StateFile, unless empty, is a file that lets the node have its shards back at once after a
	// restart. It belongs to one process at a time. Without it, or after a restart of the machine, a
	// node waits for a TTL if it has ended without leaving.
	StateFile string
	// Uptime is a clock that counts while the machine sleeps, and that nobody sets.
	Uptime func() time.Duration
	// Engines opens and closes the engines.
	Engines Engines
	// Log, unless nil, gets what operators want to know.
	Log *slog.Logger
}

// Engines are the engines of the process. The node calls the methods one at a time, and they must not
// block.
type Engines interface {
	// Open begins to open the engine of a shard. When the engine has ended it calls [Holding.Ended].
	Open(h *Holding)
	// Close begins to end an engine: orderly, so that requests in flight end and what they brought is
	// committed; or at once, so that requests are broken off and nothing more is committed. An
	// orderly end may be followed by one that is not.
	Close(h *Holding, orderly bool)
	// Granted says that what the node has of a shared limit may have changed: see [Node.Turn].
	Granted(key string)
}

// validate returns nil, or what cannot be used.
func (o *Options) validate() error {
	var errs []error
	if err := natsconn.ValidateName(o.Cluster.Node); err != nil {
		errs = append(errs, fmt.Errorf("cluster.node: %w", err))
	}
	if o.Replicas != 1 && o.Replicas != 3 && o.Replicas != 5 {
		errs = append(errs, fmt.Errorf("cluster.replicas is %d; it can be 1, 3 or 5", o.Replicas))
	}
	if o.Uptime == nil || o.Engines == nil {
		errs = append(errs, errors.New("a node needs a clock and engines"))
	}
	if len(o.Settings) > maxSettings-16 {
		errs = append(errs, fmt.Errorf("more than %d settings to compare", maxSettings-16))
	}
	for name, value := range o.Settings {
		if len(name) > maxSettingName || len(value) > maxSettingValue {
			errs = append(errs, fmt.Errorf("setting %.40q is too long to compare; give its hash", name))
		}
	}
	return errors.Join(append(errs, o.Names.Validate())...)
}

// settings returns what all nodes have to agree on, in the order of the names.
func (o *Options) settings() (list []setting) {
	c := &o.Cluster
	all := map[string]string{
		"cluster.shards":     fmt.Sprint(c.Shards),
		"cluster.ttl":        c.TTL.String(),
		"cluster.margin":     c.Margin.String(),
		"cluster.last_start": c.LastStart.String(),
	}
	maps.Copy(all, o.Settings)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list = append(list, setting{name, all[name]})
	}
	return list
}
