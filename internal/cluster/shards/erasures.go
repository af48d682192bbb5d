//go:build !core

package shards

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/amble-crawler/amble/internal/cluster"
	"github.com/amble-crawler/amble/internal/cluster/journal"
	"github.com/amble-crawler/amble/internal/cluster/membership"
	"github.com/amble-crawler/amble/internal/cluster/natsconn"
	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/system"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage"
)

// Erasure is a command to remove all that is kept of a host, or of a domain with all names below it, from all nodes and
// from the NATS servers. The owner of each shard carries it out between two runs of its engine: it erases from its
// files, makes a snapshot, and deletes the log and the older snapshots, so that no other view of the shard is left to
// anybody. Each node erases from the files of the shards that it does not own, also when it comes back later.
type Erasure struct {
	Number uint64                `json:"number"` // counts them, from 1
	Name   string                `json:"name"`   // canonical
	Below  bool                  `json:"below,omitempty"`
	Output bool                  `json:"output,omitempty"` // from the output too
	At     time.Time             `json:"at"`
	Shards []cluster.Shard       `json:"shards,omitempty"` // that have not carried it out
	Nodes  map[string]NodeErased `json:"nodes,omitempty"`  // by name
}

// NodeErased is what a node has erased.
type NodeErased struct {
	Erased
	Done bool `json:"done"` // from all its files
}

// Erased counts what was erased.
type Erased struct {
	Hosts    uint64 `json:"hosts"`
	URLs     uint64 `json:"urls"`
	Requests int    `json:"requests"` // of request logs
	Records  int    `json:"records"`  // of the output
}

func (e *Erased) add(o Erased) {
	e.Hosts, e.URLs, e.Requests, e.Records = e.Hosts+o.Hosts, e.URLs+o.URLs, e.Requests+o.Requests, e.Records+o.Records
}

// Directory is the directory of a shard that hosts are erased from.
type Directory struct {
	Crawl    crawl.Options // of its engine
	Names    weburl.Names
	Output   bool // from the output too
	Database bool // it has a database
}

// maxErasures bounds how many the register holds.
const maxErasures = 1000

func cloneErasures(list []Erasure) []Erasure {
	list = slices.Clone(list)
	for i := range list {
		list[i].Shards, list[i].Nodes = slices.Clone(list[i].Shards), maps.Clone(list[i].Nodes)
	}
	return list
}

func (x *Erasure) names() weburl.Names { return weburl.Names{Name: x.Name, Below: x.Below} }

// AddErasure has a cluster erase hosts: as soon as somebody crawls each shard, and each node runs. It may be called by
// those who are no node. When it returns the command is durable. ReadErasures shows how far it is.
func AddErasure(ctx context.Context, nc *nats.Conn, js jetstream.JetStream, names natsconn.Names, shards int,
	x Erasure, timeout time.Duration) (number uint64, err error) {
	d := newDesired(journal.OpenRegister(nc, js, names, "desired", timeout), nil)
	return d.addErasure(ctx, shards, x, timeout)
}

func (d *desired) addErasure(ctx context.Context, shards int, x Erasure, timeout time.Duration) (number uint64,
	err error) {
	_, err = d.command(ctx, timeout, func(now *Desired) error {
		if len(now.Erasures) == maxErasures {
			return fmt.Errorf("the register of the cluster holds %d erasures, which is all that it has room for",
				maxErasures)
		}
		x.Number, x.Shards = 1, nil
		for i := range now.Erasures {
			other := &now.Erasures[i]
			if other.names() == x.names() && other.Output == x.Output && other.At.Equal(x.At) {
				x.Number = other.Number // by a write of this command without an answer
				return errUnchanged
			}
			x.Number = max(x.Number, other.Number+1)
		}
		for s := range shards {
			x.Shards = append(x.Shards, cluster.Shard(s))
		}
		now.Erasures = append(now.Erasures, x)
		return nil
	})
	return x.Number, err
}

// ReadErasures returns all erasures of a cluster, in the order of their numbers.
func ReadErasures(
	ctx context.Context, nc *nats.Conn, js jetstream.JetStream, names natsconn.Names, timeout time.Duration,
) ([]Erasure, error) {
	data, _, err := journal.OpenRegister(nc, js, names, "desired", timeout).Read(ctx)
	if err != nil {
		return nil, err
	}
	now, err := decodeDesired(data)
	return now.Erasures, err
}

// erasedFile is the file in the directory of a shard with the number of the last erasure from it.
const erasedFile = "erased"

// erasedFrom returns the number of the last erasure from a directory.
func erasedFrom(dir string) (uint64, error) {
	text, err := os.ReadFile(filepath.Join(dir, erasedFile))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	number, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return 0, nil // it is written again, after all erasures
	}
	return number, nil
}

func setErasedFrom(dir string, number uint64) error {
	return system.WriteFile(filepath.Join(dir, erasedFile), fmt.Appendln(nil, number))
}

// due returns the first erasure that a shard or its directory has not had; nil: none.
func due(list []Erasure, shard cluster.Shard, dir string) (*Erasure, error) {
	done, err := erasedFrom(dir)
	for i := range list {
		if x := &list[i]; err == nil && (x.Number > done || slices.Contains(x.Shards, shard)) {
			return x, nil
		}
	}
	return nil, err
}

// errErase ends a run of an engine because hosts are to be erased.
var errErase = errors.New("hosts are to be erased")

// erase carries out what the shard has not had and may have, before its engine runs.
func (r *run) erase(ctx context.Context, shard *journal.Shard, now *target) error {
	id := r.holding.Shard()
	dir := r.o.directory(id)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		if err := r.adoptErasures(dir, id, now.Erasures); err != nil {
			return err
		}
	}
	if _, err := os.Stat(filepath.Join(dir, crawl.ErasureFile)); err == nil && r.o.Erase != nil {
		_, err := os.Stat(filepath.Join(dir, storage.FileName)) // it is removed first if the shard is not this node's
		if _, err := r.o.Erase(ctx, r.directoryOf(now, &Erasure{}, err == nil)); err != nil {
			return fmt.Errorf("go on with an interrupted erasure: %w", err)
		}
	}
	for {
		t, _ := r.desired.current()
		x, err := due(t.Erasures, id, dir)
		if err != nil || x == nil || r.o.Erase == nil {
			return err
		}
		if x.Number > r.mayErase && slices.Contains(x.Shards, id) {
			return r.undone(ctx, id, x.Number) // the engine runs first, for catchUp
		}
		if err := r.eraseOne(ctx, shard, &t, x); err != nil {
			return fmt.Errorf("erase %s: %w", x.Name, err)
		}
	}
}

// adoptErasures notes in a new directory those that the shard has had: its snapshot is without them.
func (r *run) adoptErasures(dir string, shard cluster.Shard, list []Erasure) error {
	done := uint64(0)
	for i := range list {
		if slices.Contains(list[i].Shards, shard) {
			break
		}
		done = list[i].Number
	}
	if err := makeDir(dir); err != nil || done == 0 {
		return err
	}
	return setErasedFrom(dir, done)
}

func (r *run) directoryOf(t *target, x *Erasure, database bool) Directory {
	o := r.o.engine(r.holding.Shard(), t.live)
	return Directory{Crawl: o, Names: x.names(), Output: x.Output, Database: database}
}

func (r *run) eraseOne(ctx context.Context, shard *journal.Shard, t *target, x *Erasure) error {
	id := r.holding.Shard()
	dir := r.o.directory(id)
	e, err := r.open(ctx, shard, t) // so that the database has all of the log, and the files what it says
	if err == nil {
		err = e.Close()
	}
	var n Erased
	if err == nil {
		n, err = r.o.Erase(ctx, r.directoryOf(t, x, true))
	}
	waits := slices.Contains(x.Shards, id)
	if err == nil && waits {
		err = r.replaceLog(ctx, shard, t)
	}
	if err != nil {
		return err
	}
	r.log.Warn("a host is erased from the shard", "name", x.Name, "hosts", n.Hosts, "urls", n.URLs,
		"requests", n.Requests,
		"records", n.Records)
	if err := setErasedFrom(dir, x.Number); err != nil {
		return err
	}
	return r.desired.erased(ctx, r.o, x.Number, func(now *Erasure) bool {
		now.Shards = slices.DeleteFunc(now.Shards, func(s cluster.Shard) bool { return s == id })
		now.count(r.o.Cluster.Node, n)
		return true
	})
}

// replaceLog makes a snapshot of a shard in place of its log, and of all that was published for it and is committed.
func (r *run) replaceLog(ctx context.Context, shard *journal.Shard, t *target) error {
	e, err := r.open(ctx, shard, t)
	if err != nil {
		return err
	}
	err = r.snapshot(ctx, e)
	return errors.Join(err, e.Close())
}

func (x *Erasure) count(node string, n Erased) {
	if x.Nodes == nil {
		x.Nodes = make(map[string]NodeErased)
	}
	sum := x.Nodes[node]
	sum.add(n)
	x.Nodes[node] = sum
}

// erased changes what the register says of an erasure, unless next returns false.
func (d *desired) erased(ctx context.Context, o *Options, number uint64, next func(*Erasure) bool) error {
	_, err := d.command(ctx, o.Timeout, func(now *Desired) error {
		for i := range now.Erasures {
			if x := &now.Erasures[i]; x.Number == number && next(x) {
				return nil
			}
		}
		return errUnchanged
	})
	return err
}

// Erasing returns the erasures that shards, or nodes that run, have not carried out, as far as this node knows.
func (n *Node) Erasing(s *membership.Survey) []membership.Erasing {
	now, _, _ := n.engines.desired.latest()
	return Unfinished(now.Erasures, s)
}

// Unfinished returns the erasures that shards, or nodes that run, have not carried out.
func Unfinished(all []Erasure, s *membership.Survey) (left []membership.Erasing) {
	for i := range all {
		x := &all[i]
		e := membership.Erasing{Name: x.Name, At: x.At, Shards: len(x.Shards)}
		for _, m := range s.Members {
			if (m.State == membership.Trusted || m.State == membership.Drained) && !x.Nodes[m.Node].Done {
				e.Nodes = append(e.Nodes, m.Node)
			}
		}
		if e.Shards > 0 || len(e.Nodes) > 0 {
			left = append(left, e)
		}
	}
	return left
}

// mustErase reports whether the engine has to end because hosts are to be erased.
func (r *run) mustErase(t *target) bool {
	if r.o.Erase == nil {
		return false
	}
	id := r.holding.Shard()
	x, err := due(t.Erasures, id, r.o.directory(id))
	return err == nil && x != nil
}

// catchUp waits until the engine has committed what was published for it before: a message that it reads after the
// erasure would bring the host back. All erasures that the target has may be carried out then. false: ctx has ended.
func (r *run) catchUp(ctx context.Context, t *target) bool {
	mark, err := r.streams.Mark(ctx)
	for err != nil && ctx.Err() == nil {
		pause(ctx, retryDown)
		mark, err = r.streams.Mark(ctx)
	}
	for r.held.read.Load() < mark && ctx.Err() == nil {
		pause(ctx, markEvery)
	}
	r.mayErase = t.Erasures[len(t.Erasures)-1].Number
	return ctx.Err() == nil
}
