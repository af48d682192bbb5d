package revisit

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/amble-crawler/amble/internal/wire"
)

const planVersion = 1

// errPlan says that the bytes of a plan cannot be read.
var errPlan = errors.New("revisit: the plan cannot be read")

// AppendBinary encodes what a plan has learned: a version, price and trim as IEEE 754 bits, big-endian, and the census.
func (p *Plan) AppendBinary(b []byte) ([]byte, error) {
	b = append(b, planVersion)
	b = binary.BigEndian.AppendUint64(b, math.Float64bits(p.price))
	b = binary.BigEndian.AppendUint64(b, math.Float64bits(p.trim))
	return p.census.appendBinary(b), nil
}

// Restore takes over what an earlier plan had learned, as AppendBinary has encoded it; no bytes: nothing.
func (p *Plan) Restore(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	d := wire.NewDecoder(b)
	version, price, trim := d.Byte(), math.Float64frombits(d.Uint64()), math.Float64frombits(d.Uint64())
	if !d.OK() || version != planVersion || !(price >= cheapest && price <= math.MaxFloat64) || !(trim >= leastTrim && trim <= mostTrim) {
		return errPlan
	}
	c, err := decodeCensus(d.Rest())
	if err != nil {
		return err
	}
	p.price, p.trim, p.census = price, trim, *c
	p.priced = math.MaxUint32 // the price is computed anew: another budget may be in force now
	return nil
}

// Pages is how many pages have a visit to come.
func (p *Plan) Pages() int { return int(p.census.pages + p.census.plain) }
