new Frame((data) => new MemoryFigure(data), pageData());
