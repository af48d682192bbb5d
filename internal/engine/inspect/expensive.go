package inspect

import (
	"sync"

	"github.com/amble-crawler/amble/internal/rules/expensive"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

// Endpoints returns the list of expensive endpoints, which is immutable.
func Endpoints() *expensive.List { return endpoints() }

var endpoints = sync.OnceValue(expensive.NewList)

// Expensive is the line of the list by which a URL is an expensive endpoint.
type Expensive struct {
	Line    int    `json:"line"`
	Product string `json:"product"`
	Class   string `json:"class"`             // such as diff, blame or archive
	OnPage  bool   `json:"on_page,omitempty"` // it counts for links on pages of the product
	Source  string `json:"source"`            // where the product says it
}

// expensiveBy returns the line for a URL; nil: it is no expensive endpoint wherever its link is.
func expensiveBy(u weburl.URL) *Expensive {
	n := Endpoints().Find(u.RequestURI(), 0)
	if n == nil {
		n = Endpoints().Find(u.RequestURI(), expensive.AnyProduct)
	}
	if n == nil {
		return nil
	}
	return &Expensive{Line: n.Number, Product: n.Product, Class: n.Class, OnPage: n.OnPage, Source: n.Source}
}
