package crawl

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/survey"
	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/storage"
)

// TestSurveyInSteps: a walk over many hosts comes in steps, each of a few of them, and counts every
// host once.
func TestSurveyInSteps(t *testing.T) {
	o := DefaultOptions()
	f := must.Get(frontier.New(o.Frontier, frontier.NewScope(frontier.ModeAny, nil, nil), time.Now()))(t)
	s := must.Get(storage.Open(t.TempDir(), storage.Options{NoSync: true}))(t)
	defer s.Close()
	const hosts = 10*survey.StepHosts + 7
	var b storage.Batch
	for i := range hosts {
		u := seed(t, fmt.Sprintf("http://h%d.test/", i)).URL
		b.Found = append(b.Found, storage.Found{URL: u, Fingerprint: s.Fingerprint(u), At: time.Now()})
	}
	must.Get(s.Commit(&b))(t)
	must.Do(t, s.Hosts(func(h *storage.Host) error { return f.Restore(h, time.Now()) }))
	o.fill()
	e := new(Engine)
	e.o, e.store, e.table, e.shared = o, s, survey.NewTable(), testShared(&o)
	e.joinProcess()
	d := testDispatcher(t)
	d.surveyor.Frontier, d.surveyor.Store, d.surveyor.Table = f, s, e.table
	d.surveyor.Begin(time.Hour)
	steps := 1
	for ; d.surveyor.Onward() != nil; steps++ {
		<-d.surveyor.Onward()
		d.surveyor.Step(time.Hour)
	}
	if states := d.surveyor.Found().States; steps < hosts/survey.StepHosts || states["ready"] != hosts {
		t.Errorf("after %d steps the states of %d hosts are %v", steps, hosts, states)
	}
	if got, want := d.surveyor.Found().FinishIn(10), float64(hosts)/10; got != want ||
		d.surveyor.Found().FinishIn(0) >= want {
		t.Errorf("at 10 requests a second it takes %g s, want %g, and %g s without a limit", got, want,
			d.surveyor.Found().FinishIn(0))
	}
	e.mailbox.Store(d.mailbox)
	table, err := e.hosts(t.Context())
	if err != nil || len(table.Rows) != hosts ||
		table.Rows[hosts-1] != (inspect.Row{Host: hosts, Left: 1, Delay: 1, State: 1}) {
		t.Errorf("the table has %d rows: %v, %v", len(table.Rows), table.Rows[len(table.Rows)-1:], err)
	}
	if d.surveyor.Begin(time.Hour); d.surveyor.Onward() != nil {
		t.Error("the next walk begins at once")
	}
}

// manyHosts is a store that says that it has more hosts than can be listed while no dispatcher runs.
type manyHosts struct{ store }

func (m manyHosts) Counters() storage.Counters { return storage.Counters{Hosts: maxUnlisted + 1} }

// TestHostsOfStart: while a run reads many hosts, a list of them waits for it; if the run ends instead,
// or never begins, the list says so.
func TestHostsOfStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, begins := range []bool{true, false} {
			e := &views{table: survey.NewTable(), ended: make(chan struct{})}
			e.store, e.ready = manyHosts{}, make(chan struct{})
			var table *inspect.Table
			var err error
			answered := make(chan struct{})
			go func() { table, err = e.hosts(t.Context()); close(answered) }()
			synctest.Wait()
			select {
			case <-answered:
				t.Fatalf("while the hosts are read: %v, %v", table, err)
			default:
			}
			if begins {
				d := testDispatcher(t)
				f := must.Get(frontier.New(frontier.DefaultOptions(),
					frontier.NewScope(frontier.ModeAny, nil, nil), time.Now()))(t)
				d.surveyor.Frontier, d.surveyor.Store, d.surveyor.Table = f, manyHosts{}, e.table
				e.mailbox.Store(d.mailbox)
				close(e.ready)
				d.surveyor.Begin(time.Hour)
			} else {
				close(e.ended)
			}
			if <-answered; (table != nil) != begins || errors.Is(err, ErrNotRunning) == begins {
				t.Errorf("run begins: %t; %v, %v", begins, table, err)
			}
		}
	})
}
