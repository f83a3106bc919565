package dim

// Share is how many of size elements each of n parts has, where all but the last one have equally many; the last one may have fewer.
func Share[T int | int64](size, n T) T { return (size + n - 1) / n }

// Shared reports whether each of n such parts has an element.
func Shared[T int | int64](size, n T) bool { return (n-1)*Share(size, n) < size }
