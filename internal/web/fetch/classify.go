package fetch

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"

	"github.com/amble-crawler/amble/internal/web/spool"
)

// lostError is a request that failed with its connection and is not held against the server.
type lostError struct{ err error }

func (e *lostError) Error() string { return e.err.Error() }
func (e *lostError) Unwrap() error { return e.err }

// unsupportedError is a request that cannot be sent.
type unsupportedError struct{ reason string }

func (e *unsupportedError) Error() string { return e.reason }

// classify names the failure err of a request. The second result is the error to show: after a
// timeout, the timeout and not its consequence.
func (w *watch) classify(err error) (Kind, error) {
	if cause := context.Cause(w.ctx); cause != nil {
		var timeout *timeoutError
		if errors.As(cause, &timeout) {
			return w.phase.timeout(), cause
		}
		if errors.Is(cause, ErrTooSlow) {
			return KindTooSlow, cause
		}
		return KindCanceled, cause
	}
	if OutOfDescriptors(err) {
		return KindLocal, fmt.Errorf("%w: %w", errDescriptors, err)
	}
	if kind := kindOfOurs(err); kind != KindUnknown {
		return kind, err
	}
	return cmp.Or(kindOfSystem(err), kindOfHTTP2(err), w.phase.failure(err)), err
}

// kindOfOurs names the errors of this package.
func kindOfOurs(err error) Kind {
	var encoding *encodingError
	var unsupported *unsupportedError
	var full *spool.Error
	var proxy *proxyError
	var media *typeError
	var lost *lostError
	switch {
	case errors.Is(err, ErrTooSlow):
		return KindTooSlow
	case errors.As(err, &lost):
		return KindLostOnReuse
	case errors.Is(err, errSignatureAsked):
		return KindSignatureAsked
	case errors.As(err, &proxy):
		return KindProxy
	case errors.As(err, &media):
		return KindTypeNotWanted
	case errors.As(err, &full):
		return KindLocal
	case errors.As(err, &encoding):
		return KindBadEncoding
	case errors.As(err, &unsupported):
		return KindUnsupported
	case errors.Is(err, errBlocked):
		return KindBlockedAddress
	case errors.Is(err, errHeaderTooLarge):
		return KindHeaderTooLarge
	case errors.Is(err, errFlood):
		return KindBadResponse
	}
	return KindUnknown
}

// kindOfSystem names the errors of the operating system.
func kindOfSystem(err error) Kind {
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return KindUnknown
	}
	switch errno {
	case syscall.ECONNREFUSED:
		return KindRefused
	case syscall.ECONNRESET, syscall.EPIPE, syscall.ECONNABORTED:
		return KindReset
	case syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.EHOSTDOWN, syscall.ENETDOWN,
		syscall.EACCES, syscall.EPERM:
		return KindUnreachable
	case syscall.ETIMEDOUT:
		return KindConnectTimeout
	case syscall.ENOBUFS, syscall.ENOMEM,
		syscall.EADDRNOTAVAIL, syscall.EADDRINUSE, syscall.EAFNOSUPPORT:
		return KindLocal
	}
	return KindUnknown
}

// failure names an error by the phase in which it occurred.
func (p phase) failure(err error) Kind {
	ended := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed)
	switch p {
	case phaseTLS:
		var certificate *tls.CertificateVerificationError
		if errors.As(err, &certificate) {
			return KindCertificate
		}
		return KindTLS
	case phaseSend, phaseHeader:
		if ended {
			return KindClosed
		}
		return KindBadResponse
	case phaseBody:
		return KindIncompleteBody
	}
	return KindUnknown
}

// errDescriptors says which resource is missing when no file can be opened.
var errDescriptors = errors.New("this process has as many files and connections open as it may: " +
	"raise the limit (ulimit -n, or LimitNOFILE= of a service), or lower crawl.workers")

// OutOfDescriptors reports whether err means that this process, or the whole machine, has as many
// files open as it may.
func OutOfDescriptors(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}
