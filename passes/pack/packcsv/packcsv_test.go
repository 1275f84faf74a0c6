package packcsv

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"aitk/passes/pack"
)

func TestRead(t *testing.T) {
	span := func(a, b int64) pack.Span { return pack.Span{Start: a, End: b} }
	cases := []struct {
		name, text string
		want       []pack.Buffer
	}{
		{"plain", "id,lower,upper,size\nb1,0,3,4\nb2,3,9,4\n", []pack.Buffer{{Bytes: 4, Spans: []pack.Span{span(0, 3)}}, {Bytes: 4, Spans: []pack.Span{span(3, 9)}}}},
		{"other order, inclusive ends, line ends of windows", "size,end,start,buffer\r\n4,2,0,x\r\n", []pack.Buffer{{Bytes: 4, Spans: []pack.Span{span(0, 3)}}}},
		{"empty lifetime", "id,lower,upper,size\nx,3,3,4\n", []pack.Buffer{{Bytes: 4}}},
		{"optional columns", "id,lower,upper,size,alignment,offset,hint\na,0,1,4,8,16,\nb,0,1,4,,,7\nc,0,1,4,1,,-1\n", []pack.Buffer{
			{Bytes: 4, Align: 8, Spans: []pack.Span{span(0, 1)}, Fixed: true, Offset: 16},
			{Bytes: 4, Spans: []pack.Span{span(0, 1)}, Hinted: true, Hint: 7},
			{Bytes: 4, Align: 1, Spans: []pack.Span{span(0, 1)}}}},
		{"gaps", "id,lower,upper,size,gaps\na,0,10,8,2-4 6-7@1:3\n", []pack.Buffer{{Bytes: 8, Spans: []pack.Span{span(0, 2), span(4, 6), span(7, 10)},
			Windows: []pack.Window{{Span: span(6, 7), Low: 1, High: 3}}}}},
		{"gaps with inclusive ends", "id,lower,end,size,gaps\na,0,9,8,2-3\n", []pack.Buffer{{Bytes: 8, Spans: []pack.Span{span(0, 2), span(4, 10)}}}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := Read(strings.NewReader(c.text))
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got.Buffers, c.want) {
				t.Errorf("got %+v, want %+v", got.Buffers, c.want)
			}
		})
	}
}

func TestReadRefuses(t *testing.T) {
	cases := []struct{ name, text, want string }{
		{"nothing", "", "no header"},
		{"missing column", "id,lower,size\n", `no column "upper"`},
		{"unknown column", "id,lower,upper,size,colour\n", `unknown column "colour"`},
		{"column twice", "id,lower,start,upper,size\n", `column "start"`},
		{"fields", "id,lower,upper,size\na,1,2\n", "line 2: 3 fields"},
		{"not a number", "id,lower,upper,size\na,1,2,4\nb,x,2,4\n", `line 3: lower: "x"`},
		{"too large a number", "id,lower,upper,size\na,1,2,99999999999999999999\n", "line 2: size"},
		{"backwards", "id,lower,upper,size\na,3,2,4\n", "line 2: lower 3 is after upper 2"},
		{"negative size", "id,lower,upper,size\na,1,2,-4\n", "line 2: size"},
		{"no name", "id,lower,upper,size\n,1,2,4\n", "line 2: id"},
		{"name twice", "id,lower,upper,size\na,1,2,4\na,1,2,4\n", "stands in line 2 already"},
		{"alignment", "id,lower,upper,size,alignment\na,1,2,4,3\n", "power of two"},
		{"offset", "id,lower,upper,size,alignment,offset\na,1,2,4,4,2\n", "multiple"},
		{"last time", "id,lower,end,size\na,1,9223372036854775807,4\n", "too large"},
		{"gap outside", "id,lower,upper,size,gaps\na,1,4,4,0-2\n", "outside"},
		{"gaps meet", "id,lower,upper,size,gaps\na,1,9,4,2-4 3-5\n", "meet"},
		{"malformed gap", "id,lower,upper,size,gaps\na,1,9,4,2\n", "wanted lower-upper"},
		{"window", "id,lower,upper,size,gaps\na,1,9,4,2-3@2:5\n", "window"},
		{"two at once", "id,lower,upper,size\na,x,2,4\nb,1,y,4\n", "line 3: upper"},
		{"long line", "id,lower,upper,size\n" + strings.Repeat("a", maxLine+1), "longer than"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if _, err := Read(strings.NewReader(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

// What is written reads back as it was.
func FuzzRead(f *testing.F) {
	f.Add("id,lower,upper,size\nb1,0,3,4\n")
	f.Add("id,lower,end,size,alignment,gaps,hint,offset\na,0,9,8,4,2-3 5-6@1:3,12,16\nb,3,3,1,,,,\n")
	f.Add("id,lower,upper,size,gaps\na,-9,9,8,-9--3@0:0 4-9\n")
	f.Fuzz(func(t *testing.T, text string) {
		a, err := Read(strings.NewReader(text))
		if err != nil {
			return
		}
		var out bytes.Buffer
		if err := Write(&out, a, nil); err != nil {
			t.Fatal(err)
		}
		b, err := Read(&out)
		if err != nil {
			t.Fatalf("%v\n%s", err, out.String())
		}
		for i := range a.Buffers {
			a.Buffers[i].Align, b.Buffers[i].Align = max(a.Buffers[i].Align, 1), max(b.Buffers[i].Align, 1)
		}
		var once, twice bytes.Buffer
		if err := errorsOf(Write(&once, a, nil), Write(&twice, b, nil)); err != nil {
			t.Fatal(err)
		}
		if once.String() != twice.String() {
			t.Fatalf("written once:\n%s\ntwice:\n%s", once.String(), twice.String())
		}
	})
}

func errorsOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
