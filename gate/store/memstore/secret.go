package memstore

import (
	"context"

	"github.com/slotgate/slotgate/gate/store"
)

// Secret implements store.Store. It ends with the process, as what it is for does.
func (s *Store) Secret(ctx context.Context, purpose string) ([32]byte, error) {
	if err := s.ready(ctx, "secret"); err != nil {
		return [32]byte{}, err
	}
	return store.DeriveKey(string(s.hashKey[:]), purpose), nil
}
