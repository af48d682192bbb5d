//go:build !core

package mirror

import "github.com/amble-crawler/amble/internal/web/stylesheet"

// styles rewrites the references of a style sheet.
func styles(css []byte, rewrite func(ref string) string) []byte {
	return stylesheet.Rewrite(css, func(r stylesheet.Reference) string { return rewrite(r.Text) })
}
