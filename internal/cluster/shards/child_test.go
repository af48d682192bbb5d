package shards

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/amble-crawler/amble/internal/cluster"
	"github.com/amble-crawler/amble/internal/cluster/natsconn"
	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/natstest"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

// childEnv is the environment variable that makes the test binary a node: what it crawls is in it.
const childEnv = "AMBLE_TEST_NODE"

// childConfig is what a child is told.
type childConfig struct {
	Name, Dir        string
	Agent            string   // what servers see: a process may have the name of an earlier one
	URLs             []string // of NATS servers
	Seeds            []string
	Resolver         string
	Delay            time.Duration
	TTL              time.Duration
	Shards, Replicas int
	Export, Import   string // a directory: instead of being a node, export to it or import from it
	StopAfter        int    // shards: then it only waits to be killed. 0: never
}

// runChild is a node in a process of its own, if this process was started for that. It obeys the lines
// of its standard input, and ends with it.
func runChild() {
	text := os.Getenv(childEnv)
	if text == "" {
		return
	}
	if err := crawlAsChild(text); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func crawlAsChild(text string) error {
	var c childConfig
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return err
	}
	o := crawlOptionsWith(c.Resolver, c.Dir, c.Agent, c.Delay)
	o.Frontier.Politeness.PerIP = 1
	n := nodeOptions(o, c.Name, c.TTL)
	settings := new(delays).of(&o)
	n.Cluster.Shards, n.Replicas, n.Settings = c.Shards, c.Replicas, settings
	for _, seed := range c.Seeds {
		u, err := weburl.Parse(seed)
		if err != nil {
			return err
		}
		n.Seeds = append(n.Seeds, crawl.Seed{URL: u, Source: "the test"})
	}
	if c.Export+c.Import != "" {
		return c.move(n)
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	nc, node, err := openNode(&c, n, log)
	if err != nil {
		return err
	}
	defer nc.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	settings.node.Store(node)
	if err := agree(ctx, node); err != nil {
		return err
	}
	child := &reporter{node: node, shards: c.Shards}
	node.Observe(unanswered(func(page string, end time.Time) { child.say("unanswered %d %s", end.UnixNano(), page) }))
	go child.report()
	go child.obey()
	return node.Run(context.Background())
}

// move exports or imports, and says after each shard how many it has moved.
func (c *childConfig) move(o Options) error {
	nc, js, err := natsconn.Connect(natsconn.Options{URLs: c.URLs, Node: c.Name, Names: names, IgnoreOthers: true})
	if err != nil {
		return err
	}
	defer nc.Close()
	moved := func(shards int) {
		fmt.Println("moved", shards)
		if shards == c.StopAfter {
			select {}
		}
	}
	o.Timeout = patience // an export gives up after it
	if c.Export != "" {
		_, err = Export(context.Background(), nc, js, o, c.Export, func(x Exported) { moved(x.Shards) })
	} else {
		_, err = Import(context.Background(), nc, js, o, c.Import, func(i Imported) { moved(i.Shards) })
	}
	return err
}

// openNode connects to the servers and opens the node. It tries for as long as they may need to start and
// to elect a leader.
func openNode(c *childConfig, o Options, log *slog.Logger) (nc *nats.Conn, node *Node, err error) {
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		var js jetstream.JetStream
		nc, js, err = natsconn.Connect(natsconn.Options{URLs: c.URLs, Node: c.Name, Names: names, IgnoreOthers: true,
			Events: func(event string, err error) { log.Info(event, "error", err) }})
		if err != nil {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second) // a request may be lost in an election
		node, err = Open(ctx, nc, js, o, log)
		cancel()
		if err == nil {
			return nc, node, nil
		}
		nc.Close()
	}
	return nil, nil, err
}

// reporter tells the parent what the node owns, and what became of the parent's commands.
type reporter struct {
	node   *Node
	shards int
	mu     sync.Mutex // guards standard output
}

func (r *reporter) say(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Printf(format+"\n", args...)
}

// report says which shards the node owns whenever that has changed, for as long as the process lives,
// and for how long the process did nothing.
func (r *reporter) report() {
	const every = 20 * time.Millisecond
	reported, worst := "", time.Duration(0)
	for {
		if owned := fmt.Sprint(ownedBy(r.node)); owned != reported {
			reported = owned
			r.say("owns %s", strings.Trim(owned, "[]"))
		}
		before := time.Now()
		time.Sleep(every)
		if stalled := time.Since(before) - every; stalled > worst {
			worst = stalled
			r.say("stalled %d", stalled)
		}
	}
}

// obey carries out the commands of the parent: "leave", and "add URL".
func (r *reporter) obey() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		switch command, rest, _ := strings.Cut(lines.Text(), " "); command {
		case "leave":
			r.node.Leave()
		case "add":
			go func() {
				if err := r.add(rest); err != nil {
					r.say("refused %s %v", rest, err)
				} else {
					r.say("added %s", rest)
				}
			}()
		}
	}
	os.Exit(2) // the parent has ended
}

// engineOf returns the engine of a shard, if it is open.
func (e *engines) engineOf(s cluster.Shard) *crawl.Engine {
	e.mu.Lock()
	defer e.mu.Unlock()
	for h, r := range e.open {
		if h.Shard() == s {
			return r.engine.Load()
		}
	}
	return nil
}

// add adds a URL to the crawl, if the shard of its host is of this node.
func (r *reporter) add(text string) error {
	u, err := weburl.Parse(text)
	if err != nil {
		return err
	}
	e := r.node.engines.engineOf(cluster.ShardOf(u.Host(), r.shards))
	if e == nil {
		return errors.New("elsewhere")
	}
	i, err := e.NewImport(crawl.ImportOptions{})
	if err != nil {
		return err
	}
	defer i.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return errors.Join(i.Add(crawl.Addition{URL: u}), i.Commit(ctx))
}

// child is a node that is a process of its own.
type child struct {
	w       *world
	name    string
	agent   string
	dir     string
	proxies []*natstest.Proxy
	command *exec.Cmd
	in      io.WriteCloser
	ended   chan struct{} // closed when the process has ended, and all that it said was taken
	stalled atomic.Int64
	stops   bool         // the test stops it
	moved   atomic.Int64 // shards that it has exported or imported

	mu       sync.Mutex // guards what follows
	owned    []cluster.Shard
	accepted map[string]bool // the URLs with an answer: whether they were added
	log      []string        // the last lines of its log
}

// hasty is the name of a node whose file has a shorter delay than the cluster.
const hasty = "hasty"

// startChild starts a process with the data directory dir. Its way to each server is a proxy.
func (w *world) startChild(name, dir string) *child {
	w.t.Helper()
	return w.startChildWith(name, dir, func(*childConfig) {})
}

// startMover starts a process that exports or imports.
func (w *world) startMover(change func(*childConfig)) *child {
	w.t.Helper()
	return w.startChildWith("mover", w.t.TempDir(), change)
}

// startChildWith is startChild of a process that is told more.
func (w *world) startChildWith(name, dir string, change func(*childConfig)) *child {
	w.t.Helper()
	agent := fmt.Sprintf("%s-%d", name, len(w.children))
	c := &child{w: w, name: name, agent: agent, dir: dir, ended: make(chan struct{}), accepted: make(map[string]bool)}
	config := childConfig{Name: name, Dir: dir, Agent: agent, Resolver: w.web.ResolverAddr(),
		Delay: w.delay, TTL: w.ttl,
		Shards: shards, Replicas: w.replicas}
	for _, address := range w.servers.Addresses() {
		proxy := natstest.NewProxy(w.t, address)
		c.proxies, config.URLs = append(c.proxies, proxy), append(config.URLs, proxy.URL())
	}
	for _, s := range allSeeds(w.t, w.web) {
		config.Seeds = append(config.Seeds, s.URL.String())
	}
	if name == hasty {
		config.Delay = time.Millisecond
	}
	change(&config)
	text := must.Get(json.Marshal(config))(w.t)
	program := must.Get(os.Executable())(w.t)
	c.command = exec.Command(program)
	c.command.Env = append(os.Environ(), childEnv+"="+string(text), "GORACE=atexit_sleep_ms=0")
	var pipes [2]io.ReadCloser
	var errs [4]error
	c.in, errs[0] = c.command.StdinPipe()
	pipes[0], errs[1] = c.command.StdoutPipe()
	pipes[1], errs[2] = c.command.StderrPipe()
	errs[3] = c.command.Start()
	must.Do(w.t, errors.Join(errs[:]...))
	var reading sync.WaitGroup
	reading.Go(func() { eachLine(pipes[0], c.hear) })
	reading.Go(func() { eachLine(pipes[1], c.note) })
	go func() {
		reading.Wait()
		_ = c.command.Wait()
		c.mu.Lock()
		c.owned = nil
		c.mu.Unlock()
		close(c.ended)
	}()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.children = append(w.children, c)
	return c
}

func eachLine(from io.Reader, take func(string)) {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		take(lines.Text())
	}
	_, _ = io.Copy(io.Discard, from)
}

// hear takes a line that the child has said to its parent.
func (c *child) hear(line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	what, rest, _ := strings.Cut(line, " ")
	switch what {
	case "owns":
		c.owned = nil
		for _, text := range strings.Fields(rest) {
			var s cluster.Shard
			_, _ = fmt.Sscan(text, &s)
			c.owned = append(c.owned, s)
		}
	case "added", "refused":
		url, _, _ := strings.Cut(rest, " ")
		c.accepted[url] = what == "added"
	case "unanswered":
		end, page, _ := strings.Cut(rest, " ")
		at, _ := strconv.ParseInt(end, 10, 64)
		c.w.losses.addRequest(c.agent, page, time.Unix(0, at))
	case "moved":
		var n int64
		_, _ = fmt.Sscan(rest, &n)
		c.moved.Store(n)
	case "stalled":
		var d int64
		_, _ = fmt.Sscan(rest, &d)
		c.stalled.Store(d)
	}
}

// keptLines bounds what is kept of the log of a child.
const keptLines = 4000

// note keeps a line of the log of the child.
func (c *child) note(line string) {
	c.w.losses.note(c.agent, line)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.log = append(c.log, line); len(c.log) > keptLines {
		c.log = slices.Delete(c.log, 0, keptLines/2)
	}
}

// isRunning reports whether the process has not ended.
func (c *child) isRunning() bool {
	select {
	case <-c.ended:
		return false
	default:
		return true
	}
}

// say gives the child a command. One that has ended does not hear it.
func (c *child) say(command string) { _, _ = io.WriteString(c.in, command+"\n") }

// kill ends the process by SIGKILL.
func (c *child) kill() {
	_ = c.command.Process.Kill()
	<-c.ended
	c.w.losses.add(c.agent, allShards)
}

// killAfter kills the child when it has moved so many shards.
func (c *child) killAfter(shards int) {
	c.w.t.Helper()
	c.w.eventually(fmt.Sprintf("%d shards are moved", shards), func() error {
		if c.moved.Load() < int64(shards) {
			return errNotYet
		}
		return nil
	})
	c.kill()
}

// leave makes the child leave in an orderly way.
func (c *child) leave() {
	c.w.t.Helper()
	c.say("leave")
	select {
	case <-c.ended:
	case <-time.After(patience):
		c.w.t.Fatalf("%s does not end", c.name)
	}
	assert.Equal(c.w.t, c.command.ProcessState.ExitCode(), 0, c.name, "has ended with")
}

// endChildren ends all children. If the test has failed it keeps the logs of those that ran.
func (w *world) endChildren() {
	for _, c := range w.running() {
		if !w.t.Failed() {
			c.kill()
			continue
		}
		_ = c.command.Process.Signal(syscall.SIGQUIT) // it writes down what its goroutines do
		<-c.ended
		path := filepath.Join(os.TempDir(), fmt.Sprintf("%s-%s.log", strings.ReplaceAll(w.t.Name(), "/", "-"), c.agent))
		if err := os.WriteFile(path, []byte(strings.Join(c.log, "\n")), 0o600); err == nil {
			w.t.Logf("the log of %s is in %s", c.name, path)
		}
	}
}

// running returns the children that have not ended.
func (w *world) running() (all []*child) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.children {
		if c.isRunning() {
			all = append(all, c)
		}
	}
	return all
}
