package recrawl

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/amble-crawler/amble/internal/records/wire"
)

const planVersion = 2 // version 1 has no yield

// errPlan is the error for a plan that cannot be decoded.
var errPlan = errors.New("recrawl: the plan cannot be read")

// AppendBinary encodes the state of a plan: a version, price and trim as IEEE 754 bits, big-endian, the yield, and the
// census.
func (p *Plan) AppendBinary(b []byte) ([]byte, error) {
	b = append(b, planVersion)
	b = binary.BigEndian.AppendUint64(b, math.Float64bits(p.price))
	b = binary.BigEndian.AppendUint64(b, math.Float64bits(p.trim))
	return p.census.appendBinary(p.yield.append(b)), nil
}

// Restore takes over the state of an earlier plan from the bytes of AppendBinary. No bytes mean no
// state.
func (p *Plan) Restore(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	d := wire.NewDecoder(b)
	version, price, trim := d.Byte(), math.Float64frombits(d.Uint64()), math.Float64frombits(d.Uint64())
	var y Yield
	if version > 1 {
		y = decodeYield(&d)
	}
	if !d.OK() || version == 0 || version > planVersion || !(price >= cheapest && price <= math.MaxFloat64) ||
		!(trim >= leastTrim && trim <= mostTrim) {
		return errPlan
	}
	c, err := decodeCensus(d.Rest())
	if err != nil {
		return err
	}
	p.price, p.trim, p.census, p.yield = price, trim, *c, y
	p.priced = math.MaxUint32 // compute the price again: the budget may have changed
	return nil
}

// Forget takes a page off the plan that is no longer known, given its history.
func (p *Plan) Forget(h History, i Importance) { p.census.remove(h, i) }

// Recall undoes Forget.
func (p *Plan) Recall(h History, i Importance) { p.census.add(h, i) }
