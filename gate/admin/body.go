package admin

import (
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// readBody decodes the request's JSON object into v. Unknown and repeated
// members, other types, text after the object and bad UTF-8 are refused: an
// operator's typing error must not change half of what was meant. It reports
// whether v may be used; if not, it has answered. The Content-Type does not matter:
// curl -d says it is a form.
func readBody(w http.ResponseWriter, r *http.Request, v any) bool {
	text, err := io.ReadAll(r.Body)
	if tooLarge := new(http.MaxBytesError); errors.As(err, &tooLarge) {
		fail(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is over %d bytes", tooLarge.Limit))
		return false
	}
	if err != nil {
		fail(w, http.StatusBadRequest, "the body did not arrive whole")
		return false
	}
	if err := json.Unmarshal(text, v, json.RejectUnknownMembers(true)); err != nil {
		fail(w, http.StatusBadRequest, bodyFault(err))
		return false
	}
	return true
}

func bodyFault(err error) string {
	var semantic *json.SemanticError
	var syntactic *jsontext.SyntacticError
	switch {
	case errors.As(err, &semantic) && errors.Is(semantic.Err, json.ErrUnknownName):
		return fmt.Sprintf("unknown member %q", clip(semantic.JSONPointer.LastToken()))
	case errors.As(err, &semantic) && semantic.JSONPointer == "":
		return "the body must be one JSON object"
	case errors.As(err, &semantic):
		return fmt.Sprintf("member %q cannot be a JSON %v", semantic.JSONPointer.LastToken(), semantic.JSONKind)
	case errors.As(err, &syntactic) && errors.Is(syntactic.Err, jsontext.ErrDuplicateName):
		return fmt.Sprintf("member %q is there twice", clip(syntactic.JSONPointer.LastToken()))
	case errors.As(err, &syntactic):
		return fmt.Sprintf("the body is not valid JSON at byte %d", syntactic.ByteOffset)
	}
	return "the body must be one JSON object"
}
