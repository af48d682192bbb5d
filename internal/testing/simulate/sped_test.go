package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/rules/recrawl"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

// The sped-up web that TestSoakFreshness of internal/engine/crawl serves for real.
const (
	spedPages  = 240
	spedBudget = 16 // recrawls a second
	spedWarmUp = 150 * time.Second
	spedLength = 390 * time.Second
)

// spedWeb returns pages that change about every twenty seconds.
func spedWeb(seed uint64) (all []*page) {
	random := rand.New(rand.NewPCG(seed, 2))
	for i := range spedPages {
		origin := weburl.Origin{Scheme: "http", Host: fmt.Sprintf("h%d.test", i%4), Port: 80}
		p := &page{
			url: origin.URL(fmt.Sprintf("/%d", i)), kind: poisson,
			rate:   math.Exp(random.NormFloat64()) / 20 * day.Seconds(),
			weight: 1.0 / spedPages, from: spedWarmUp.Seconds() / day.Seconds(),
			random: rand.New(rand.NewPCG(seed, uint64(i+3))),
		}
		p.next = p.begin()
		all = append(all, p)
	}
	return all
}

// TestForetold: on a web with a day in a second, where whole seconds of due times matter most,
// copies become as fresh as the forecast says, and the budget is used. Over 40 seeds, the result is
// lower by 0.010, because rates are estimates, with a deviation of 0.008.
func TestForetold(t *testing.T) {
	const seeds = 10
	sum := 0.0
	for seed := range uint64(seeds) {
		all := spedWeb(seed)
		o := recrawl.DefaultOptions()
		o.Min, o.Max, o.Budget = time.Second, time.Minute, spedBudget*day.Seconds()
		plan := must.Get(recrawl.New(o))(t)
		f := frontier.DefaultOptions()
		f.Politeness.Delay = 20 * time.Millisecond
		c := must.Get(newCrawl(all, plan, f, answers{least: 1, extra: 1}, seed))(t)
		c.until(epoch.Add(spedWarmUp))
		before := c.recrawls
		c.until(epoch.Add(spedLength))
		must.Do(t, c.err)
		reached, foretold := score(all, spedLength.Seconds()/day.Seconds()).Freshness, plan.Forecast(o.Budget).Freshness
		used := float64(c.recrawls-before) / (spedLength - spedWarmUp).Seconds() / spedBudget
		t.Logf("seed %d: fresh for %.3f of the time, forecast %.3f, %.2f of the budget used", seed, reached,
			foretold, used)
		assert.AtMost(t, math.Abs(foretold-reached-0.010), 3*0.008, "seed", seed, reached,
			"of the copies are fresh, the forecast was", foretold)
		assert.True(t, !(used < 0.93) && !(used > 1.02), "seed %d: %.2f of the budget is used", seed, used)
		sum += foretold - reached
	}
	assert.AtMost(t, math.Abs((sum/seeds)-0.010), 0.008, "the forecast higher than the result, on average")
}
