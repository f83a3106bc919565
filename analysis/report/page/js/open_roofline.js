new Frame((data) => new RooflineFigure(data), pageData());
