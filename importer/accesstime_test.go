package importer

import (
	"os"
	"reflect"
	"testing"
	"time"
)

// accessTime is when a file was read last, where the system says so; the zero time else.
func accessTime(t *testing.T, path string) time.Time {
	t.Helper()
	st, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	sys := reflect.Indirect(reflect.ValueOf(st.Sys()))
	if sys.Kind() != reflect.Struct {
		return time.Time{}
	}
	at := sys.FieldByName("Atim")
	if !at.IsValid() {
		return time.Time{}
	}
	return time.Unix(at.FieldByName("Sec").Int(), at.FieldByName("Nsec").Int())
}
