package op

import (
	"embed"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"strings"

	"aitk/ir"
)

//go:embed *.go
var sources embed.FS

// Synopses reads the first sentence of each op's comment from the sources of this package, so that what `aitk ops` shows is what the reader of
// the code sees. The key is the op's name. It costs some milliseconds.
func Synopses() map[string]string {
	found := make(map[string]string)
	names := Vocabulary()
	files, err := fs.Glob(sources, "*.go")
	if err != nil {
		panic(ir.Bugf("embedded sources: %v", err))
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := sources.ReadFile(name)
		if err != nil {
			panic(ir.Bugf("embedded source %s: %v", name, err))
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			panic(ir.Bugf("embedded source %s: %v", name, err))
		}
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.TYPE {
				continue
			}
			for _, s := range g.Specs {
				t := s.(*ast.TypeSpec)
				comment := t.Doc
				if comment == nil && !g.Lparen.IsValid() {
					comment = g.Doc // type X without parentheses
				}
				if _, isOp := names[t.Name.Name]; isOp {
					found[t.Name.Name] = new(doc.Package).Synopsis(comment.Text())
				}
			}
		}
	}
	return found
}
