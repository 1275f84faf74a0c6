package main

import (
	"bytes"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"aitk/ir"
	"aitk/ir/op"
)

// maxLines is the length of the longest file that a person wrote.
const maxLines = 600

// source is a parsed Go file.
type source struct {
	path      string // from the repository's root, with slashes
	dir       string
	raw       []byte
	file      *ast.File
	test      bool
	generated bool
}

var generatedLine = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

// sources parses every Go file of the repository once.
func sources(t *testing.T) (*token.FileSet, []source) {
	t.Helper()
	fset := token.NewFileSet()
	var all []source
	for _, path := range goFiles(t) {
		raw, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		f, err := parser.ParseFile(fset, path, raw, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Error(err)
			continue
		}
		all = append(all, source{
			path: path, dir: filepath.ToSlash(filepath.Dir(path)), raw: raw, file: f,
			test: strings.HasSuffix(path, "_test.go"), generated: generatedLine.Match(raw),
		})
	}
	return fset, all
}

// TestFiles checks what can be seen in one file: length, format, init functions, blank imports, and what only cmd/aitk may do.
func TestFiles(t *testing.T) {
	fset, all := sources(t)
	for _, s := range all {
		if s.generated {
			continue
		}
		if n := bytes.Count(s.raw, []byte("\n")); n > maxLines {
			t.Errorf("%s has %d lines, more than %d: it holds more than one idea", s.path, n, maxLines)
		}
		if want, err := format.Source(s.raw); err != nil || !bytes.Equal(want, s.raw) {
			t.Errorf("%s is not formatted (gofmt -w): %v", s.path, err)
		}
		if base := filepath.Base(s.dir); slices.Contains([]string{"util", "utils", "common", "core", "help" + "ers"}, base) {
			t.Errorf("%s: a package is named after what it does, not %s", s.path, base)
		}
		for _, imp := range s.file.Imports {
			if imp.Name != nil && imp.Name.Name == "_" && imp.Path.Value != `"embed"` && !s.test {
				t.Errorf("%s imports %s for its side effects", s.path, imp.Path.Value)
			}
			if imp.Path.Value == `"flag"` && !s.test && !strings.HasPrefix(s.dir, "cmd/") {
				t.Errorf("%s imports flag: only cmd/aitk reads the command line", s.path)
			}
		}
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
				t.Errorf("%v: init function: nothing happens by being imported", fset.Position(f.Pos()))
			}
		}
		if !s.test && !strings.HasPrefix(s.dir, "cmd/") && s.file.Name.Name != "main" { // a tool of the tests has a world of its own
			worldly(t, fset, s)
		}
	}
}

// worldly finds reads of the environment and writes to standard output.
func worldly(t *testing.T, fset *token.FileSet, s source) {
	ast.Inspect(s.file, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		x, ok := sel.X.(*ast.Ident)
		if !ok {
			return true
		}
		switch name := x.Name + "." + sel.Sel.Name; name {
		case "os.Getenv", "os.LookupEnv", "os.Environ", "os.Args", "os.Stdout", "os.Exit", "fmt.Print", "fmt.Println", "fmt.Printf":
			if s.dir == "runtime/cuda/drv" && strings.HasSuffix(name, "Env") { // AITK_LIBCUDA
				return true
			}
			if s.dir == "internal/fakecuda" && name == "os.Environ" { // what the compilers that it starts inherit
				return true
			}
			t.Errorf("%v: %s: only cmd/aitk deals with the environment and standard output", fset.Position(n.Pos()), name)
		}
		return true
	})
}

// TestPackageComments wants one that begins as godoc expects and says more than a line.
func TestPackageComments(t *testing.T) {
	_, all := sources(t)
	doc, seen := map[string]string{}, map[string]string{}
	for _, s := range all {
		if s.test {
			continue
		}
		seen[s.dir] = s.file.Name.Name
		if s.file.Doc != nil && !s.generated {
			doc[s.dir] += s.file.Doc.Text()
		}
	}
	for dir, name := range seen {
		want := "Package " + name + " "
		if name == "main" {
			want = "Command " + filepath.Base(dir) + " "
		}
		if !strings.HasPrefix(doc[dir], want) || len(doc[dir]) < 100 {
			t.Errorf("%s: the package comment should begin with %q and say what the package does and must not know; it is %q", dir, want, doc[dir])
		}
	}
}

// TestNoMutableVariables allows package variables that never change: error values, tables that nothing assigns to, assertions.
func TestNoMutableVariables(t *testing.T) {
	fset, all := sources(t)
	type variable struct{ dir, name string }
	where := map[variable]token.Pos{}
	for _, s := range all {
		if s.test || s.generated {
			continue
		}
		for _, d := range s.file.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.VAR {
				continue
			}
			for _, spec := range g.Specs {
				v := spec.(*ast.ValueSpec)
				for _, n := range v.Names {
					if n.Name != "_" {
						where[variable{s.dir, n.Name}] = n.Pos()
					}
				}
				if stateful(v) {
					t.Errorf("%v: a package variable that is made to change", fset.Position(v.Pos()))
				}
				if len(v.Values) == 0 && !embedded(g, v) && v.Names[0].Name != "_" {
					t.Errorf("%v: a package variable without a value can only be meant to change", fset.Position(v.Pos()))
				}
			}
		}
	}
	for _, s := range all {
		if s.test || s.generated {
			continue
		}
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Body == nil {
				continue
			}
			local := locals(f)
			changed := func(e ast.Expr) {
				if n := rootName(e); n != nil && !local[n.Name] {
					if _, ok := where[variable{s.dir, n.Name}]; ok {
						t.Errorf("%v: package variable %s is changed", fset.Position(n.Pos()), n.Name)
					}
				}
			}
			ast.Inspect(f.Body, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.AssignStmt:
					if n.Tok != token.DEFINE {
						for _, e := range n.Lhs {
							changed(e)
						}
					}
				case *ast.IncDecStmt:
					changed(n.X)
				case *ast.UnaryExpr:
					if _, element := n.X.(*ast.IndexExpr); n.Op == token.AND && !element { // the address of a table's row is how rows are read
						changed(n.X)
					}
				case *ast.CallExpr:
					if id, ok := n.Fun.(*ast.Ident); ok && (id.Name == "delete" || id.Name == "clear") && len(n.Args) > 0 {
						changed(n.Args[0])
					}
				}
				return true
			})
		}
	}
}

// stateful tells whether a declaration mentions a type whose purpose is to change. Functions of package sync that compute a value once do not count.
func stateful(v *ast.ValueSpec) bool {
	found := false
	look := func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false // its own variables are its own business
		case *ast.ChanType:
			found = true
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && (x.Name == "atomic" || x.Name == "sync" && !strings.HasPrefix(n.Sel.Name, "Once")) {
				found = true
			} else if ok && x.Name == "sync" && n.Sel.Name == "Once" {
				found = true
			}
		}
		return true
	}
	ast.Inspect(v, look)
	return found
}

// embedded tells whether a go:embed directive fills a variable.
func embedded(g *ast.GenDecl, v *ast.ValueSpec) bool {
	for _, c := range []*ast.CommentGroup{g.Doc, v.Doc} {
		if c == nil {
			continue
		}
		for _, line := range c.List {
			if strings.HasPrefix(line.Text, "//go:embed ") {
				return true
			}
		}
	}
	return false
}

// rootName is x in x, x[i], x.f, (*x).f.
func rootName(e ast.Expr) *ast.Ident {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			return x
		case *ast.IndexExpr:
			e = x.X
		case *ast.SelectorExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		default:
			return nil
		}
	}
}

// locals are the names that a function declares anywhere, which hide those of the package. A package variable of the same name is then not watched in that
// function, so do not give them common names.
func locals(f *ast.FuncDecl) map[string]bool {
	names := map[string]bool{}
	add := func(e ast.Expr) {
		if id, ok := e.(*ast.Ident); ok {
			names[id.Name] = true
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			for _, id := range n.Names {
				names[id.Name] = true
			}
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				for _, e := range n.Lhs {
					add(e)
				}
			}
		case *ast.RangeStmt:
			if n.Tok == token.DEFINE {
				add(n.Key)
				add(n.Value)
			}
		case *ast.ValueSpec:
			for _, id := range n.Names {
				names[id.Name] = true
			}
		}
		return true
	})
	return names
}

// unfinished are words that admit that work is left, or that speak of how the code came to be. They are put together here so that this file
// does not hold them.
var unfinished = regexp.MustCompile(`\b(` + strings.Join([]string{
	"TO" + "DO", "FIX" + "ME", "XX" + "X", "not " + "implemented", "for " + "now", "st" + "ubs?", "place" + "holders?",
	"help" + "ers?", "ses" + "sions?",
}, "|") + `)\b|(?:^|[\s"'` + "`" + `(=])/(?:wo` + `rk|ro` + `ot)\b`)

// onnxModule is the part of the onnx package for Python that scripts make models with.
const onnxModule = "help" + "er"

// TestWords reads code and documents alike.
func TestWords(t *testing.T) {
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if path != "." && path != ".ci" && strings.HasPrefix(d.Name(), ".") {
				return fs.SkipDir
			}
			return nil
		}
		switch ext := filepath.Ext(path); {
		case ext == ".go" || ext == ".md" || ext == ".py" || ext == ".proto" || ext == ".sh" || ext == ".yaml" || ext == ".c" || ext == ".h":
		case path == "Makefile" || path == ".ci/run":
		default:
			return nil
		}
		raw, err := os.ReadFile(filepath.Join(root, path))
		if err != nil || generatedLine.Match(raw) {
			return err
		}
		for i, line := range strings.Split(string(raw), "\n") {
			if filepath.Ext(path) == ".py" {
				line = strings.ReplaceAll(line, onnxModule, "")
			}
			if w := unfinished.FindString(line); w != "" {
				t.Errorf("%s:%d: %q", path, i+1, strings.TrimSpace(w))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestProtobufStaysInside looks for types of the generated packages in what other packages export.
func TestProtobufStaysInside(t *testing.T) {
	fset, all := sources(t)
	for _, s := range all {
		if s.test || strings.HasSuffix(s.dir, "pb") {
			continue
		}
		foreign := func(n ast.Node) {
			if n == nil {
				return
			}
			ast.Inspect(n, func(n ast.Node) bool {
				if sel, ok := n.(*ast.SelectorExpr); ok {
					if x, ok := sel.X.(*ast.Ident); ok && (strings.HasSuffix(x.Name, "pb") || x.Name == "proto" || x.Name == "protoreflect") {
						t.Errorf("%v: %s.%s in an exported declaration", fset.Position(n.Pos()), x.Name, sel.Sel.Name)
					}
				}
				return true
			})
		}
		for _, d := range s.file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && (d.Recv == nil || exportedReceiver(d.Recv)) {
					foreign(d.Type)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch v := spec.(type) {
					case *ast.TypeSpec:
						if st, ok := v.Type.(*ast.StructType); ok && v.Name.IsExported() {
							for _, f := range st.Fields.List {
								if len(f.Names) == 0 || f.Names[0].IsExported() {
									foreign(f.Type)
								}
							}
						} else if v.Name.IsExported() {
							foreign(v.Type)
						}
					case *ast.ValueSpec:
						if v.Names[0].IsExported() && v.Type != nil {
							foreign(v.Type)
						}
					}
				}
			}
		}
	}
}

func exportedReceiver(r *ast.FieldList) bool {
	n := rootName(r.List[0].Type)
	return n != nil && n.IsExported()
}

// TestOps wants of every op its samples, a meaning, and a gradient or the reason why it has none.
func TestOps(t *testing.T) {
	seen := map[string]bool{}
	for _, o := range op.All() {
		name := ir.OpName(o)
		if seen[name] {
			t.Errorf("%s stands twice in op.All", name)
		}
		seen[name] = true
		_, diff := o.(ir.Differentiable)
		none, noGrad := o.(ir.NoGrad)
		if diff == noGrad || noGrad && none.NoGradReason() == "" {
			t.Errorf("%s needs a gradient or a reason why it has none, and not both", name)
		}
		_, eval := o.(ir.Evaluator)
		_, dec := o.(ir.Decomposer)
		if !eval && !dec {
			t.Errorf("%s has no meaning: neither Eval nor Decompose", name)
		}
		good, bad := 0, 0
		if s, ok := o.(ir.Sampler); ok {
			for _, x := range s.Samples() {
				if x.Err == "" {
					good++
				} else {
					bad++
				}
			}
		}
		if good == 0 || bad == 0 {
			t.Errorf("%s has %d good and %d bad samples, and needs both", name, good, bad)
		}
	}
}
