package redisstore

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"
)

// dialer opens connections in place of the client library, whose own would not heed the
// call's deadline during a TLS handshake. A name in a certificate is that of the address.
func (o Options) dialer() func(ctx context.Context, network, address string) (net.Conn, error) {
	plain := &net.Dialer{Timeout: firstShare(o.Timeout)}
	if o.TLS == nil {
		return plain.DialContext
	}
	return (&tls.Dialer{NetDialer: plain, Config: o.TLS}).DialContext
}

// lazily reports a failure to connect only when the connection is used. After as many
// failures as it is large, the library's pool would fail for up to a second without
// even trying: an outage would outlast its cause.
func lazily(dial func(ctx context.Context, network, address string) (net.Conn, error)) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		connection, err := dial(ctx, network, address)
		if err == nil {
			return lookingAgain(connection), nil
		}
		if failed := (*net.OpError)(nil); !errors.As(err, &failed) || failed.Op != "dial" {
			err = &net.OpError{Op: "dial", Net: network, Err: err} // nothing has been sent
		}
		return unreached{wrapped{err}}, nil
	}
}

// wrapped is an error that stays what it is when the library unwraps it, as it does with
// those of a connection's first commands.
type wrapped struct{ error }

func (w wrapped) Unwrap() error { return w.error }

// unreached is a connection that could not be opened, for the reason that everything
// fails with.
type unreached struct{ err error }

func (u unreached) Read([]byte) (int, error)         { return 0, u.err }
func (u unreached) Write([]byte) (int, error)        { return 0, u.err }
func (u unreached) Close() error                     { return nil }
func (u unreached) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (u unreached) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (u unreached) SetDeadline(time.Time) error      { return nil }
func (u unreached) SetReadDeadline(time.Time) error  { return nil }
func (u unreached) SetWriteDeadline(time.Time) error { return nil }
