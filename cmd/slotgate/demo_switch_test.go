package main

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"github.com/slotgate/slotgate/gate/store"
)

// TestSwitchedStoreIsAwayForEveryCall finds calls that were added to the store and
// would still reach a store that is away.
func TestSwitchedStoreIsAwayForEveryCall(t *testing.T) {
	s := newSwitchedStore()
	defer s.Close()
	if err := s.Ping(t.Context()); err != nil {
		t.Fatal("there, but", err)
	}
	s.away.Store(true)
	calls := reflect.ValueOf(s)
	methods := reflect.TypeOf(s.Store)
	for i := range methods.NumMethod() {
		method := methods.Method(i)
		results := method.Type.NumOut()
		if method.Name == "Close" || results == 0 || method.Type.Out(results-1) != reflect.TypeFor[error]() {
			continue // Close is ours; the others are hints
		}
		var args []reflect.Value
		for arg := 1; arg < method.Type.NumIn(); arg++ { // 0 is the receiver
			args = append(args, zeroOf(method.Type.In(arg)))
		}
		err, _ := calls.MethodByName(method.Name).Call(args)[results-1].Interface().(error)
		var failure *store.Error
		if !errors.As(err, &failure) || failure.Kind != store.KindConnection || failure.Maybe {
			t.Errorf("%s on a store that is away: %v", method.Name, err)
		}
	}
	s.away.Store(false)
	if err := s.Ping(t.Context()); err != nil {
		t.Error("back, but", err)
	}
}

func zeroOf(arg reflect.Type) reflect.Value {
	switch {
	case arg == reflect.TypeFor[context.Context]():
		return reflect.ValueOf(context.Background())
	case arg.Kind() == reflect.Pointer:
		return reflect.New(arg.Elem())
	default:
		return reflect.Zero(arg)
	}
}
