package source

import (
	"errors"

	"github.com/slotgate/slotgate/rules"
)

func openHTTP(*rules.TruthConfig, Options) (Source, error) {
	return nil, errors.New("truth.http: not there yet")
}
