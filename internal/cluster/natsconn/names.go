package natsconn

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Names are the names of what a cluster keeps on its servers.
type Names struct {
	// Cluster is the name of the cluster.
	Cluster string
	// Prefix is what the names of all streams and subjects begin with. Empty: amble-CLUSTER
	Prefix string
}

// maxName bounds the names of clusters and nodes.
const maxName = 64

// ValidateName returns nil if s can be the name of a cluster or a node: a token of a subject.
func ValidateName(s string) error {
	if s == "" {
		return errors.New("the name is empty")
	}
	if len(s) > maxName {
		return fmt.Errorf("the name is longer than %d characters", maxName)
	}
	for _, c := range []byte(s) {
		if c != '-' && c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return fmt.Errorf("%q: a name has only letters, digits, - and _", s)
		}
	}
	return nil
}

// Validate returns nil, or what is wrong with the names.
func (n Names) Validate() error {
	if err := ValidateName(n.Cluster); err != nil {
		return fmt.Errorf("cluster.name: %w", err)
	}
	if n.Prefix != "" {
		if err := ValidateName(n.Prefix); err != nil {
			return fmt.Errorf("cluster.prefix: %w", err)
		}
	}
	return nil
}

// Base returns what the names of all streams and subjects begin with.
func (n Names) Base() string {
	if n.Prefix == "" {
		return "amble-" + n.Cluster
	}
	return n.Prefix
}

// Subject returns the subject of some tokens under the prefix.
func (n Names) Subject(tokens ...string) string { return n.Base() + "." + strings.Join(tokens, ".") }

// OfShard returns the subject of a kind for a shard: PREFIX.KIND.SHARD.
func (n Names) OfShard(kind string, shard int32) string {
	return n.Subject(kind, strconv.FormatInt(int64(shard), 10))
}

// Cut returns what follows PREFIX.KIND. in a subject.
func (n Names) Cut(subject, kind string) (rest string, found bool) {
	return strings.CutPrefix(subject, n.Subject(kind, ""))
}

// Stream returns the name of the stream with the registers and the logs of all shards. They are in
// one stream because a message can only be fenced by a subject of its own stream.
func (n Names) Stream() string { return n.Base() + "_log" }

// Incoming returns the name of the stream with the URLs that shards send to each other.
func (n Names) Incoming() string { return n.Base() + "_in" }

// Bucket returns the name of the bucket with the snapshots. Its stream has the name OBJ_BUCKET.
func (n Names) Bucket() string { return n.Base() + "_snapshots" }

// Permissions returns the subjects that a node publishes to and subscribes to. A user that is
// allowed these and no others can run a node of this cluster, and can do nothing to another one.
func (n Names) Permissions() (publish, subscribe []string) {
	all := n.Subject(">")
	publish = []string{all, "$O." + n.Bucket() + ".>", "$JS.API.INFO"}
	for _, stream := range []string{n.Stream(), n.Incoming(), "OBJ_" + n.Bucket()} {
		publish = append(publish,
			"$JS.API.STREAM.*."+stream,
			"$JS.API.STREAM.MSG.GET."+stream,
			"$JS.API.STREAM.MSG.DELETE."+stream,
			"$JS.API.DIRECT.GET."+stream,
			"$JS.API.DIRECT.GET."+stream+".>",
			"$JS.API.CONSUMER.*."+stream+".>",
			"$JS.API.CONSUMER.MSG.NEXT."+stream+".>",
			"$JS.ACK."+stream+".>",
		)
	}
	return publish, []string{all}
}
