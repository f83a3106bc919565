new DiffPage(pageData());
