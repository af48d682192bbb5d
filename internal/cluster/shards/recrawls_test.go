package shards

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amble-crawler/amble/internal/cluster"
	"github.com/amble-crawler/amble/internal/cluster/membership"
	"github.com/amble-crawler/amble/internal/rules/recrawl"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/natstest"
)

// recrawlNode is a node of a simulated cluster that divides a recrawl budget.
type recrawlNode struct {
	*recrawlBudget
	own map[cluster.Shard]*recrawlPart
}

// TestRecrawlBudget: whatever the servers answer, whoever dies and however the weights change, the parts in
// use are never more than the budget. When nothing changes any more they are what the weights say.
func TestRecrawlBudget(t *testing.T) { checkRecrawlBudget(t, 60) }

func checkRecrawlBudget(t *testing.T, seeds uint64) {
	synctest.Test(t, func(t *testing.T) {
		for seed := range seeds {
			testRecrawlBudget(t, seed)
		}
	})
}

func testRecrawlBudget(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 21))
	r := &simulatedRegister{rng: rng}
	n, budget := 2+rng.IntN(6), float64(1+rng.IntN(100_000))
	nodes := make([]*recrawlNode, 2+rng.IntN(3))
	join := func(i int) {
		nodes[i] = &recrawlNode{newRecrawlBudget(r, budget, n, nil), make(map[cluster.Shard]*recrawlPart)}
	}
	for i := range nodes {
		join(i)
	}
	owner, weights := make([]*recrawlPart, n), make([]float64, n)
	ended := make(map[*recrawlPart]bool)
	move := func(s int) {
		ended[owner[s]] = true
		p := &recrawlPart{shard: cluster.Shard(s)}
		p.mayWrite = func() error {
			if ended[p] {
				return membership.ErrNotTrusted
			}
			return nil
		}
		owner[s] = p
		p.measure(1, weights[s]) // what it was when the node had it before
		nodes[rng.IntN(len(nodes))].own[p.shard] = p
	}
	for s := range owner {
		weights[s] = rng.Float64() * 1000
		move(s)
	}
	divide := func(node *recrawlNode) {
		var own []*recrawlPart
		for s, p := range node.own {
			if !ended[p] {
				p.measure(math.Exp(rng.Float64()), weights[s])
			}
			own = append(own, p)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+rng.IntN(60))*time.Millisecond)
		defer cancel()
		_ = node.divide(ctx, own)
	}
	check := func() {
		var used uint64
		for _, p := range owner {
			used += p.used.Load()
		}
		must.True(t, used <= uint64(budget*perRecrawl), "seed %d: parts of %d in all, the budget is %g", seed, used,
			budget*perRecrawl)
	}
	for range 150 {
		switch rng.IntN(8) {
		case 0: // the shard moves; who had it may still try to write
			move(rng.IntN(n))
		case 1:
			weights[rng.IntN(n)] = math.Exp(rng.Float64() * 12)
		case 2: // a node dies, and one without memory takes its name and its shards
			i := rng.IntN(len(nodes))
			lost := nodes[i].own
			join(i)
			for s, p := range lost {
				if !ended[p] {
					move(int(s))
				}
			}
		default:
			divide(nodes[rng.IntN(len(nodes))])
		}
		check()
	}
	for range 30 {
		for _, node := range nodes {
			divide(node)
			check()
		}
	}
	sum := 0.0
	for _, w := range weights {
		sum += max(w, 1)
	}
	for s, p := range owner {
		if want := budget * max(weights[s], 1) / sum; math.Abs(p.inForce()-want) > 0.1*want+0.01 {
			t.Fatalf("seed %d: shard %d has %g a day of %g, its share is %g", seed, s, p.inForce(), budget, want)
		}
	}
}

// TestGoldenShares: the register is these bytes.
func TestGoldenShares(t *testing.T) {
	all := recrawlShares{3: {300, 1, 1.5}, 0: {1, 2, 1e6}}
	assert.Equal(t, fmt.Sprintf("%x", all.encode()), "0102000102412e84800000000003ac02013ff8000000000000",
		"the register")
	got, err := decodeShares(all.encode(), 4)
	assert.True(t, err == nil && maps.Equal(got, all), "%v, %v", got, err)
	assert.Fails(decodeShares(all.encode(), 3))(t, nil, "a shard that there is")
}

// FuzzShares: whatever the register has, it is refused or means what is encoded the same, and what a node
// makes of it are parts within the budget.
func FuzzShares(f *testing.F) {
	f.Add(recrawlShares{3: {300, 1, 1.5}, 0: {1, 2, 1e6}}.encode())
	f.Add(recrawlShares{1: {maxPart, maxPart, mostPrice}, 2: {maxPart, maxPart, leastPrice}}.encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		all, err := decodeShares(b, 4)
		if err != nil {
			return
		}
		if again, err := decodeShares(all.encode(), 4); err != nil || !maps.Equal(again, all) {
			t.Errorf("%v, %v, want %v", again, err, all)
		}
		p := all.price()
		assert.True(t, p >= leastPrice/2 && p <= mostPrice*2, "the price of %v is %g", all, p)
		e := all[2]
		e.weight = max(e.weight, leastWeight)
		all[2] = e
		const budget = 1000
		before, _ := all.sums()
		all.divide([]cluster.Shard{2}, budget)
		if after, _ := all.sums(); after > max(budget, before) || all[2].part > budget {
			t.Errorf("parts of %d, and then %d, the budget is %d", before, after, budget)
		}
	})
}

// TestHeavyRecrawls: all nodes together make as many recrawls as recrawl.budget says, and each shard has its
// share of them by its pages: also when a node is killed and another one joins.
func TestHeavyRecrawls(t *testing.T) {
	t.Parallel()
	const aSecond = 20
	sites := lopsided()
	web := serve(t, sites)
	w := newWorldOf(t, web, nil, natstest.Start(t, names, 1, nil), time.Millisecond, shortTTL)
	for _, site := range sites {
		w.seeds = append(w.seeds, seed(t, web, site.Host))
	}
	w.alter = func(o *Options) {
		r := recrawl.DefaultOptions()
		r.Policy, r.Interval, r.Min, r.Budget = recrawl.Fixed, time.Second, time.Second, aSecond*24*60*60
		o.Crawl.Recrawl = &r
	}
	w.api = true
	first := w.start("first", t.TempDir())
	w.start("second", t.TempDir())
	w.requested(43)
	recrawls := func(more int) {
		t.Helper()
		from := len(web.Requests().Pages())
		w.eventually("recrawls", func() error {
			if got := len(web.Requests().Pages()) - from; got < more {
				return fmt.Errorf("%d of %d", got, more)
			}
			return nil
		})
	}
	recrawls(20)
	first.kill()
	third := w.start("third", t.TempDir())
	w.eventually("the shares", func() error { return w.sharesOf(4, aSecond*24*60*60) })
	recrawls(40)
	if _, text, _ := third.call("GET", "/api/v1/plan", ""); !strings.Contains(text,
		fmt.Sprintf(`"budget_per_day":%d,`, aSecond*24*60*60)) {
		t.Errorf("the plan of all shards: %s", text)
	}
	w.leaveRest()
	log, seen, n := web.Requests().Pages(), make(map[string]bool), 0
	for _, q := range log {
		if page := q.Host + q.Path; !seen[page] {
			seen[page] = true
			continue
		}
		n++
		if most := q.Start.Sub(w.started).Seconds()*aSecond + 1; float64(n) > most {
			t.Fatalf("%d recrawls in %v, at most %.0f are allowed", n, q.Start.Sub(w.started), most)
		}
	}
	t.Logf("%d recrawls in %v", n, time.Since(w.started))
}

// sharesOf returns an error if the engines of so many shards do not have their parts of a budget, by weight.
func (w *world) sharesOf(count int, budget float64) error {
	parts, sum := make(map[cluster.Shard]float64), 0.0
	var all recrawlShares
	for _, p := range w.nodes {
		for h, r := range p.node.engines.all() {
			if h.Check() == nil {
				parts[h.Shard()] = r.part.inForce()
				sum += r.part.inForce()
				all, _, _ = p.node.engines.recrawls.latest()
			}
		}
	}
	_, weights := all.sums()
	if len(parts) != count || weights == 0 || sum > budget {
		return fmt.Errorf("parts of %d shards, %g of %g in all", len(parts), sum, budget)
	}
	for s, part := range parts {
		want := budget * float64(all[s].weight) / float64(weights)
		if math.Abs(part-want) > 0.05*budget || s == 0 && want < budget/2 {
			return fmt.Errorf("shard %d has %.0f, by its weight it should have %.0f", s, part, want)
		}
	}
	return nil
}
