package worker

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"

	"dmir/analysis/pipelining"
)

// filler gives every field that JSON has a value of its own.
type filler struct{ n int }

// seldom are types whose values are not free: JSON has only those that exist.
var seldom = map[reflect.Type]func(n int) any{
	reflect.TypeFor[pipelining.Kind](): func(n int) any { return pipelining.Kind(n % 3) },
}

func (f *filler) fill(t *testing.T, path string, v reflect.Value) {
	f.n++
	if make := seldom[v.Type()]; make != nil {
		v.Set(reflect.ValueOf(make(f.n)))
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(f.n))
	case reflect.Uint8:
		v.SetUint(uint64(f.n % 250))
	case reflect.Float64:
		v.SetFloat(float64(f.n) + 0.25)
	case reflect.String:
		v.SetString(fmt.Sprintf("%s \"%d\"\n<é>", path, f.n))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(t, path, v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			f.fill(t, path+"[]", v.Index(i))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range 2 {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			f.fill(t, path+" key", key)
			f.fill(t, path+"[]", value)
			v.SetMapIndex(key, value)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if field := v.Type().Field(i); field.IsExported() && field.Tag.Get("json") != "-" {
				f.fill(t, path+"."+field.Name, v.Field(i))
			}
		}
	default:
		t.Fatalf("%s: no values of %s are known", path, v.Type())
	}
}

// What one process writes the other reads: every field of every message, whatever type it has, and
// what is left out.
func TestWire(t *testing.T) {
	for _, of := range []reflect.Type{reflect.TypeFor[Request](), reflect.TypeFor[message]()} {
		for _, filled := range []bool{true, false} {
			t.Run(fmt.Sprint(of.Name(), filled), func(t *testing.T) {
				sent, read := reflect.New(of), reflect.New(of)
				if filled {
					new(filler).fill(t, of.Name(), sent.Elem())
				}
				text, err := json.Marshal(sent.Interface())
				if err != nil {
					t.Fatal(err)
				}
				if err := json.Unmarshal(text, read.Interface()); err != nil {
					t.Fatalf("%v in %s", err, text)
				}
				differ(t, of.Name(), sent.Elem(), read.Elem())
			})
		}
	}
}

// differ reports the fields in which b is not a.
func differ(t *testing.T, path string, a, b reflect.Value) {
	t.Helper()
	switch {
	case reflect.DeepEqual(a.Interface(), b.Interface()):
	case a.Kind() == reflect.Pointer && !a.IsNil() && !b.IsNil():
		differ(t, path, a.Elem(), b.Elem())
	case a.Kind() == reflect.Slice && a.Len() == b.Len():
		for i := range a.Len() {
			differ(t, path+"[]", a.Index(i), b.Index(i))
		}
	case a.Kind() == reflect.Struct:
		for i := range a.NumField() {
			if f := a.Type().Field(i); f.IsExported() {
				differ(t, path+"."+f.Name, a.Field(i), b.Field(i))
			}
		}
	default:
		t.Errorf("%s: wrote %#v, read %#v", path, a.Interface(), b.Interface())
	}
}
