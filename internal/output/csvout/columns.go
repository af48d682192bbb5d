//go:build !core

package csvout

import "reflect"

// Columns returns the names of the columns of a type.
func Columns[T any]() []string { return names(fieldsOf(reflect.TypeFor[T](), nil)) }
