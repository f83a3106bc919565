// Recording joins screenshots into an animated GIF. The files of the folder are the frames, by name; the number before the extension is the
// time in milliseconds for which a frame is shown: 004-1200.png.
//
// All frames share one palette, which pngquant chooses over all of them, so that text keeps its edges and what does not change does not
// flicker. A frame holds the part that differs from the one before.
//
//	go run ./scripts/recording FOLDER OUT.gif
package main

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/gif"
	"image/png"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
)

// colors of the palette; one more is for what does not change.
const colors = 255

func main() {
	log.SetFlags(0)
	if len(os.Args) != 3 {
		log.Fatal("usage: recording FOLDER OUT.gif")
	}
	paths, err := filepath.Glob(filepath.Join(os.Args[1], "*.png"))
	if err != nil || len(paths) == 0 {
		log.Fatalf("there are no frames in %s", os.Args[1])
	}
	slices.Sort(paths)
	frames, delays, err := read(paths)
	if err != nil {
		log.Fatal(err)
	}
	film, err := quantize(frames)
	if err != nil {
		log.Fatal(err)
	}
	var out bytes.Buffer
	if err := gif.EncodeAll(&out, join(film, frames[0].Bounds().Size(), delays)); err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(os.Args[2], out.Bytes(), 0o644); err != nil {
		log.Fatal(err)
	}
}

var shown = regexp.MustCompile(`-(\d+)\.png$`)

// read is the frames and the hundredths of a second for which each is shown; equal ones that follow each other are one.
func read(paths []string) (frames []*image.RGBA, delays []int, err error) {
	for _, path := range paths {
		m := shown.FindStringSubmatch(path)
		if m == nil {
			return nil, nil, fmt.Errorf("%s does not say how long it is shown", path)
		}
		ms, err := strconv.Atoi(m[1])
		if err != nil {
			return nil, nil, err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, nil, err
		}
		decoded, err := png.Decode(bytes.NewReader(text))
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", path, err)
		}
		frame := image.NewRGBA(image.Rectangle{Max: decoded.Bounds().Size()})
		draw.Draw(frame, frame.Rect, decoded, decoded.Bounds().Min, draw.Src)
		if n := len(frames); n > 0 {
			if frame.Rect != frames[n-1].Rect {
				return nil, nil, fmt.Errorf("%s is not as large as the frame before", path)
			}
			if bytes.Equal(frame.Pix, frames[n-1].Pix) {
				delays[n-1] += ms / 10
				continue
			}
		}
		frames, delays = append(frames, frame), append(delays, ms/10)
	}
	return frames, delays, nil
}

// quantize is the frames below one another, in the colors that suit all of them.
func quantize(frames []*image.RGBA) (*image.Paletted, error) {
	size := frames[0].Rect.Size()
	all := image.NewRGBA(image.Rect(0, 0, size.X, size.Y*len(frames)))
	for i, f := range frames {
		copy(all.Pix[i*len(f.Pix):], f.Pix)
	}
	var in, out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(&in, all); err != nil {
		return nil, err
	}
	cmd := exec.Command("pngquant", "--nofs", "--speed", "1", "--strip", strconv.Itoa(colors), "-")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = &in, &out, os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("pngquant: %w", err)
	}
	decoded, err := png.Decode(&out)
	if err != nil {
		return nil, err
	}
	film, ok := decoded.(*image.Paletted)
	if !ok {
		return nil, fmt.Errorf("pngquant wrote an image without a palette")
	}
	return film, nil
}

// join is the animation of frames of a size that stand below one another in film.
func join(film *image.Paletted, size image.Point, delays []int) *gif.GIF {
	same := uint8(len(film.Palette))
	palette := append(slices.Clone(film.Palette), color.RGBA{})
	g := &gif.GIF{Config: image.Config{ColorModel: palette, Width: size.X, Height: size.Y}}
	row := func(frame, y int) []uint8 {
		at := (frame*size.Y + y) * film.Stride
		return film.Pix[at : at+size.X]
	}
	for i, delay := range delays {
		frame := image.NewPaletted(image.Rectangle{Max: size}, palette)
		changed := image.Rectangle{}
		for y := range size.Y {
			to, now := frame.Pix[y*frame.Stride:], row(i, y)
			for x, c := range now {
				if i > 0 && row(i-1, y)[x] == c {
					to[x] = same
					continue
				}
				to[x] = c
				changed = changed.Union(image.Rect(x, y, x+1, y+1))
			}
		}
		if changed.Empty() { // the frames differ by colors that are one in the palette
			g.Delay[len(g.Delay)-1] += delay
			continue
		}
		g.Image = append(g.Image, frame.SubImage(changed).(*image.Paletted))
		g.Delay = append(g.Delay, delay)
		g.Disposal = append(g.Disposal, gif.DisposalNone)
	}
	return g
}
