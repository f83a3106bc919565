;;; init.el --- An init file as docs/EDITORS.md describes it -*- lexical-binding: t; -*-
(add-to-list 'load-path (getenv "DMIR_EMACS"))
(require 'dmir-mode)
(add-hook 'dmir-mode-hook #'eglot-ensure)
;;; init.el ends here
