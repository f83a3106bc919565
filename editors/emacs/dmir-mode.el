;;; dmir-mode.el --- MLIR with the data-movement dialect -*- lexical-binding: t; -*-

;; Version: 0.1.0
;; Package-Requires: ((emacs "29.1"))
;; Keywords: languages

;;; Commentary:

;; A mode for .dmir files that uses `dmir lsp' through eglot:
;;
;;   (add-to-list 'load-path "/path/to/dmir/editors/emacs")
;;   (require 'dmir-mode)
;;   (add-hook 'dmir-mode-hook #'eglot-ensure)
;;
;; Costs are inlay hints, wasted movement is a diagnostic with a fix, and a
;; function runs with `dmir-run'.

;;; Code:

(require 'eglot)

(defgroup dmir nil
  "MLIR with the data-movement dialect."
  :group 'languages)

(defcustom dmir-command '("dmir" "lsp")
  "The language server and its arguments."
  :type '(repeat string))

(defvar dmir-mode-syntax-table
  (let ((table (make-syntax-table)))
    (modify-syntax-entry ?/ ". 12" table)
    (modify-syntax-entry ?\n ">" table)
    (modify-syntax-entry ?\" "\"" table)
    (dolist (c '(?_ ?. ?$)) (modify-syntax-entry c "_" table))
    (dolist (c '(?% ?@ ?^ ?# ?!)) (modify-syntax-entry c "'" table))
    (modify-syntax-entry ?- "." table)
    table)
  "Syntax of MLIR's text.")

(defconst dmir-font-lock-keywords
  `((,(rx symbol-start (or "func.func" "func.call" "func.return" "return" "call" "module"
                           "dm.kernel" "dm.map" "dm.scan" "dm.while" "dm.if" "dm.yield")
          symbol-end)
     . font-lock-keyword-face)
    (,(rx symbol-start (or "public" "private" "nested" "attributes" "loc" "else" "do") symbol-end)
     . font-lock-keyword-face)
    (,(rx "%" (+ (any alnum "_$.-"))) . font-lock-variable-name-face)
    (,(rx "@" (+ (any alnum "_$."))) . font-lock-function-name-face)
    (,(rx "^" (+ (any alnum "_$.-"))) . font-lock-constant-face)
    (,(rx (any "#!") (any alpha "_") (* (any alnum "_$."))) . font-lock-preprocessor-face)
    (,(rx (or symbol-start "x") (group (or "index" "none" "bf16" (seq "f" (+ digit) (* (any alnum)))
                                           (seq (? (any "su")) "i" (+ digit))))
          symbol-end)
     1 font-lock-type-face)
    (,(rx symbol-start (or "tensor" "memref" "vector" "complex" "tuple") "<") . font-lock-type-face)
    (,(rx symbol-start (any alpha "_") (* (any alnum "_")) "." (+ (any alnum "_.$"))) . font-lock-builtin-face))
  "Colours of MLIR's text.")

(defun dmir-indent-line ()
  "Indent the line by the number of open braces."
  (let* ((depth (save-excursion
                  (back-to-indentation)
                  (let ((open (car (syntax-ppss (line-beginning-position)))))
                    (if (looking-at (rx (or "}" ")" "]" (seq "^" (+ (any alnum "_")) (* nonl) ":" eol))))
                        (1- open)
                      open))))
         (column (* 2 (max 0 depth))))
    (if (<= (current-column) (current-indentation))
        (indent-line-to column)
      (save-excursion (indent-line-to column)))))

;;;###autoload
(define-derived-mode dmir-mode prog-mode "dmir"
  "Mode for MLIR with the data-movement dialect."
  (setq-local comment-start "// " comment-start-skip (rx "//" (* blank))
              indent-tabs-mode nil
              indent-line-function #'dmir-indent-line
              font-lock-defaults '(dmir-font-lock-keywords)))

;;;###autoload
(add-to-list 'auto-mode-alist '("\\.dmir\\'" . dmir-mode))
(add-to-list 'eglot-server-programs '(dmir-mode . (lambda (&rest _) dmir-command)))

(defun dmir--lens (command)
  "The argument of the lens with COMMAND that belongs to the function at point."
  (let ((line (1- (line-number-at-pos nil t))) found)
    (seq-doseq (lens (jsonrpc-request (eglot--current-server-or-lose) :textDocument/codeLens
                                      (list :textDocument (eglot--TextDocumentIdentifier))))
      (let ((what (plist-get lens :command)))
        (when (and (equal (plist-get what :command) command)
                   (or (not found)
                       (<= (plist-get (plist-get (plist-get lens :range) :start) :line) line)))
          (setq found (aref (plist-get what :arguments) 0)))))
    (or found (user-error "This file has no function"))))

(defun dmir--execute (command &rest arguments)
  "Execute COMMAND of the server with ARGUMENTS and return its result."
  (jsonrpc-request (eglot--current-server-or-lose) :workspace/executeCommand
                   (list :command command :arguments (vconcat arguments))
                   :timeout 600))

(defun dmir-run ()
  "Run the function at point; hints show the measured times."
  (interactive)
  (let ((result (dmir--execute "dmir.run" (dmir--lens "dmir.run"))))
    (if (eq (plist-get result :ok) :json-false)
        (user-error "%s" (plist-get result :message))
      (message "%s" (or (plist-get result :message) "done"))
      result)))

(defun dmir-cost ()
  "Show the table of costs of the function at point."
  (interactive)
  (let ((cost (dmir--execute "dmir.cost" (dmir--lens "dmir.cost"))))
    (with-current-buffer (get-buffer-create (concat "*dmir " (plist-get cost :title) "*"))
      (let ((inhibit-read-only t))
        (erase-buffer)
        (insert (plist-get cost :text))
        (goto-char (point-min)))
      (special-mode)
      (setq-local truncate-lines t)
      (display-buffer (current-buffer)))))

(defun dmir-panel (kind)
  "Open the panel KIND of the function at point in the browser."
  (interactive (list (completing-read "Panel: " '("graph" "roofline" "memory" "mesh" "timeline" "diff" "history") nil t)))
  (let ((lens (dmir--lens "dmir.run")))
    (dmir--execute-async "dmir.panel"
                         (list :uri (plist-get lens :uri) :kind kind :function (plist-get lens :func)))))

(defun dmir--execute-async (command argument &optional done)
  "Execute COMMAND of the server with ARGUMENT, then call DONE with its result.
The server may ask Emacs for something before it answers."
  (jsonrpc-async-request (eglot--current-server-or-lose) :workspace/executeCommand
                         (list :command command :arguments (vector argument))
                         :success-fn (or done #'ignore)
                         :error-fn (lambda (err) (message "dmir: %s" (plist-get err :message)))
                         :timeout 600))

(defun dmir-view (view)
  "Show the program of the buffer at another level, VIEW."
  (interactive (list (completing-read "View: " '("generic" "expanded" "fixed" "cost") nil t)))
  (dmir--execute-async
   "dmir.view" (list :uri (plist-get (eglot--TextDocumentIdentifier) :uri) :view view)
   (lambda (shown)
     (with-current-buffer (get-buffer-create (format "*dmir %s*" view))
       (let ((inhibit-read-only t))
         (erase-buffer)
         (insert (plist-get shown :text))
         (goto-char (point-min)))
       (unless (equal view "cost")
         (delay-mode-hooks (dmir-mode)) ; without the hooks, no server is started for it
         (font-lock-mode))
       (setq-local truncate-lines t)
       (setq buffer-read-only t)
       (set-buffer-modified-p nil)
       (display-buffer (current-buffer))))))

(defun dmir-toggle (setting)
  "Toggle SETTING, which is hints or lint."
  (interactive (list (completing-read "Switch: " '("hints" "lint") nil t)))
  (dmir--execute-async "dmir.toggle" (list :setting setting)))

(provide 'dmir-mode)
;;; dmir-mode.el ends here
