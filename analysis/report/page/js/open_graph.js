new Frame((data) => new GraphFigure(data), pageData());
