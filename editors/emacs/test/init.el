;;; init.el --- A user's setup from docs/EDITORS.md -*- lexical-binding: t; -*-
(add-to-list 'load-path (getenv "DMIR_EMACS"))
(require 'dmir-mode)
(add-hook 'dmir-mode-hook #'eglot-ensure)
;;; init.el ends here
