package shards

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/cluster/journal"
	"github.com/amble-crawler/amble/internal/cluster/membership"
	"github.com/amble-crawler/amble/internal/cluster/natsconn"
	"github.com/amble-crawler/amble/internal/modules/erase"
	"github.com/amble-crawler/amble/internal/modules/warc/warcfiles"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/natstest"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage"
)

// eraseDirectory is Options.Erase as the program has it.
func eraseDirectory(ctx context.Context, d Directory) (n Erased, err error) {
	o := erase.Options{
		Crawl: d.Crawl, Names: d.Names, Output: d.Output, Now: time.Now, Logged: true, NoDatabase: !d.Database,
		Files: outputFiles,
	}
	o.Crawl.Spool.Dir = filepath.Join(d.Crawl.DataDir, "spool")
	r, err := erase.Resume(ctx, o)
	if err == nil && d.Names.Name != "" {
		r, err = erase.Run(ctx, o)
	}
	if err != nil || r == nil {
		return n, err
	}
	return Erased{
		Hosts: uint64(r.Database.Hosts), URLs: uint64(r.Database.URLs), Requests: r.LoggedRequests(),
		Records: r.Records(),
	}, nil
}

// erasing is a client that has the world erase a host.
type erasing struct {
	w  *world
	js jetstream.JetStream
}

func (w *world) erases() *erasing {
	w.t.Helper()
	_, js := natstest.Connect(w.t, natsconn.Options{
		URLs: []string{"nats://" + w.servers.Addresses()[0]}, Node: "client", Names: names, IgnoreOthers: true,
	})
	return &erasing{w, js}
}

func (c *erasing) begin(name string) {
	c.w.t.Helper()
	ctx, cancel := context.WithTimeout(c.w.t.Context(), patience)
	defer cancel()
	x := Erasure{Name: name, Below: true, Output: true, At: time.Now()}
	must.Do(c.w.t, untilUp(ctx, func() error {
		_, err := AddErasure(ctx, c.js.Conn(), c.js, names, shards, x, 5*time.Second)
		return err
	}))
}

// done waits until no shard is left, and the nodes are done.
func (c *erasing) done(nodes ...string) (sum Erased) {
	c.w.t.Helper()
	c.w.eventually("the host is erased", func() error {
		all, err := ReadErasures(c.w.t.Context(), c.js.Conn(), c.js, names, 5*time.Second)
		if err != nil || len(all) != 1 {
			return fmt.Errorf("%v, %v", all, err)
		}
		sum = Erased{}
		for _, n := range all[0].Nodes {
			sum.add(n.Erased)
		}
		for _, node := range nodes {
			if len(all[0].Shards) > 0 || !all[0].Nodes[node].Done {
				return fmt.Errorf("%+v", all[0])
			}
		}
		return nil
	})
	return sum
}

// mentions returns the files below a directory that have some text.
func mentions(t *testing.T, dir string, text ...string) (found []string) {
	t.Helper()
	must.Do(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		for _, s := range text {
			if bytes.Contains(b, []byte(s)) {
				found = append(found, path+": "+s)
			}
		}
		return err
	}))
	return found
}

// messages returns the messages on the servers that have some text.
func (c *erasing) messages(text string) (found []string) {
	c.w.t.Helper()
	for _, name := range []string{names.Stream(), names.Incoming()} {
		stream := must.Get(c.js.Stream(c.w.t.Context(), name))(c.w.t)
		state := stream.CachedInfo().State
		for n := state.FirstSeq; n <= state.LastSeq && state.Msgs > 0; n++ {
			m, err := stream.GetMsg(c.w.t.Context(), n)
			switch {
			case err == nil && bytes.Contains(m.Data, []byte(text)):
				found = append(found, fmt.Sprintf("message %d of %s", n, m.Subject))
			case err != nil && !errors.Is(err, jetstream.ErrMsgNotFound):
				c.w.t.Fatal(err)
			}
		}
	}
	return found
}

// TestErasureUndone: a node that is done with an erasure, and takes a shard that has not had it, is not done until the
// files that the shard leaves behind are without the host too.
func TestErasureUndone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, time.Millisecond, shortTTL)
	c := w.erases()
	must.Do(t, untilUp(t.Context(), func() error {
		_, err := natsconn.OpenStream(t.Context(), c.js, names, 1)
		return err
	}))
	c.begin("gone.test")
	o := w.options("one", t.TempDir())
	o.Erase = func(context.Context, Directory) (Erased, error) { return Erased{}, nil }
	e := &engines{
		common: common{o: &o, desired: newDesired(journal.OpenRegister(c.js.Conn(), c.js, names, "desired", patience),
			logger(t))}, open: make(map[*membership.Holding]*run),
	}
	expect := func(when string, want bool) {
		t.Helper()
		all, err := ReadErasures(t.Context(), c.js.Conn(), c.js, names, patience)
		must.Do(t, err)
		err = e.eraseFiles(t.Context(), &target{version: 1}, &all[0])
		must.True(t, err == nil, "%v", err)
		all, err = ReadErasures(t.Context(), c.js.Conn(), c.js, names, patience)
		assert.True(t, err == nil && all[0].Nodes["one"].Done == want, "%s: %+v, %v", when, all, err)
	}
	expect("without files", true)
	must.Do(t, makeDir(o.directory(0)))
	must.Do(t, e.undone(t.Context(), 0, 1))
	expect("with the files of a shard that it had", true)
	holding := new(membership.Holding) // of shard 0
	e.open[holding] = nil
	must.Do(t, e.undone(t.Context(), 0, 1))
	all, err := ReadErasures(t.Context(), c.js.Conn(), c.js, names, patience)
	assert.True(t, err == nil && !all[0].Nodes["one"].Done, "before the shard gets a database: %+v, %v", all, err)
	expect("with the shard open", false)
	database := filepath.Join(o.directory(0), storage.FileName)
	must.Do(t, os.WriteFile(database, nil, 0o600))
	delete(e.open, holding)
	expect("with the shard given up", true)
	assert.Fails(os.Stat(database))(t, fs.ErrNotExist, "the database is still there")
}

// TestHeavyErasureOfUnread: URLs of the host that were published for its shard, and that nobody has read when the host
// is erased, do not bring it back.
func TestHeavyErasureOfUnread(t *testing.T) {
	t.Parallel()
	gone := host(6)
	w := newWorld(t, 5*time.Millisecond, shortTTL)
	w.seeds = w.seeds[:1]
	w.alter = func(o *Options) {
		o.Erase, o.Crawl.Mode, o.Crawl.Frontier.MaxDepth = eraseDirectory, frontier.ModeAny, 1
	}
	one := w.start("one", t.TempDir())
	w.crawled([]string{w.seeds[0].URL.Host() + "/"})
	one.leave()
	w.publishFor(w.web.URL(gone, "/unread"))
	c := w.erases()
	c.begin(gone)
	one = w.start(one.name, one.dir)
	sum := c.done(one.name)
	assert.True(t, sum.Hosts == 1 && sum.URLs == 1, "erased: %+v", sum)
	other := 0
	for host(other) == gone || shardOf(host(other)) != shardOf(gone) {
		other++
	}
	w.publishFor(w.web.URL(host(other), "/later")) // is behind all that was published before
	w.eventually("it is read", func() error { return w.haveRequested([]string{host(other) + "/later"}) })
	w.leaveRest()
	left := mentions(t, one.dir, gone+":", "test."+gone[:len(gone)-len(".test")])
	left = append(left, c.messages(gone+":")...)
	assert.True(t, len(left) <= 0, "left: %q", left)
}

// outputFiles are the files that the program erases from.
func outputFiles(dir string, known []archive.Format, names weburl.Names) erase.Files {
	return warcfiles.NewEraser(dir, known, names)
}
