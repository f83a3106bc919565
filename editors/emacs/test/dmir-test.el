;;; dmir-test.el --- Tests of the Emacs mode with the real server -*- lexical-binding: t; -*-
(require 'ert)
(require 'flymake)
(load (expand-file-name "init.el" (file-name-directory load-file-name)))
(remove-hook 'dmir-mode-hook #'eglot-ensure) ; waits for a command loop, which batch has not

;; A time-out that a loaded machine does not reach.
(setq eglot-connect-timeout 90
      jsonrpc-default-request-timeout 90)

(defvar dmir-test-workspace (file-name-as-directory (getenv "DMIR_WORKSPACE")))

(defmacro dmir-test-in (file &rest body)
  "Evaluate BODY in a fresh buffer of FILE once the server manages it."
  (declare (indent 1))
  `(let ((buffer (find-file-noselect (concat dmir-test-workspace ,file))))
     (unwind-protect
         (with-current-buffer buffer
           (switch-to-buffer buffer)
           (unless (eglot-managed-p)
             (apply #'eglot (eglot--guess-contact)))
           (dmir-test-eventually "the server" (eglot-managed-p))
           ,@body)
       (with-current-buffer buffer
         (set-buffer-modified-p nil)
         (kill-buffer)))))

(defmacro dmir-test-eventually (what form)
  "Wait until FORM is true and return its value; WHAT names it in the failure."
  (declare (indent 1))
  `(let ((end (+ (float-time) 90)) value)
     (while (and (not (setq value ,form)) (< (float-time) end))
       (accept-process-output nil 0.05))
     (or value (ert-fail (concat ,what " never came")))))

(defun dmir-test-at (text)
  "Go to the beginning of TEXT."
  (goto-char (point-min))
  (search-forward text)
  (goto-char (match-beginning 0)))

(ert-deftest dmir-mode-is-chosen ()
  (dmir-test-in "ffn.dmir"
    (should (eq major-mode 'dmir-mode))
    (should (equal comment-start "// "))
    (font-lock-ensure)
    (dmir-test-at "dm.einsum")
    (should (eq (get-text-property (point) 'face) 'font-lock-builtin-face))
    (dmir-test-at "// The same")
    (should (memq (get-text-property (1+ (point)) 'face) '(font-lock-comment-face font-lock-comment-delimiter-face)))))

(ert-deftest dmir-reports-wasted-movement ()
  (dmir-test-in "ffn.dmir"
    (flymake-start)
    (let ((found (dmir-test-eventually "a finding" (flymake-diagnostics))))
      (should (string-match-p "re-reads\\|fus" (flymake-diagnostic-text (car found)))))))

(ert-deftest dmir-shows-costs-as-hints ()
  (dmir-test-in "ffn.dmir"
    (eglot--update-hints-1 (point-min) (point-max))
    (dmir-test-at "dm.relu")
    (dmir-test-eventually "a hint behind the line"
      (seq-find (lambda (o)
                  (and (overlay-get o 'eglot--inlay-hint)
                       (string-match-p (rx digit (or "kB" "MB" "ns" "µs"))
                                       (concat (overlay-get o 'before-string) (overlay-get o 'after-string)))))
                (overlays-in (line-beginning-position) (1+ (line-end-position)))))))

(ert-deftest dmir-explains-an-op ()
  (dmir-test-in "ffn.dmir"
    (dmir-test-at "dm.einsum")
    (let (hover)
      (eglot-hover-eldoc-function (lambda (text &rest _) (setq hover text)))
      (should (string-match-p "FLOP" (dmir-test-eventually "the hover" hover))))))

(ert-deftest dmir-formats-and-keeps-comments ()
  (dmir-test-in "messy.dmir"
    (eglot-format-buffer)
    (dmir-test-at "dm.exp")
    (should (equal (buffer-substring (line-beginning-position) (line-end-position))
                   "  %y = dm.exp %x : tensor<64x64xf32> // kept"))))

(ert-deftest dmir-fix-is-applied ()
  (dmir-test-in "ffn.dmir"
    (flymake-start)
    (let* ((found (dmir-test-eventually "a finding" (flymake-diagnostics)))
           (at (car found)))
      (goto-char (flymake-diagnostic-beg at))
      (let* ((eglot-confirm-server-edits nil)
             (actions (eglot-code-actions (flymake-diagnostic-beg at) (flymake-diagnostic-end at) "quickfix"))
             (fix (dmir-test-eventually "a fix"
                    (seq-find (lambda (a) (string-match-p "saves" (plist-get a :title))) actions))))
        (eglot-execute (eglot-current-server) fix)
        (dmir-test-at "%0 = dm.kernel")
        (should (buffer-modified-p))))))

(ert-deftest dmir-runs-the-function-at-point ()
  (dmir-test-in "ffn.dmir"
    (dmir-test-at "dm.yield")
    (should (string-match-p "ffn_fused" (plist-get (dmir-run) :func)))))

(ert-deftest dmir-cost-opens-the-table ()
  (dmir-test-in "ffn.dmir"
    (dmir-test-at "dm.yield")
    (dmir-cost)
    (let ((table (seq-find (lambda (b) (string-prefix-p "*dmir " (buffer-name b))) (buffer-list))))
      (should table)
      (with-current-buffer table
        (should (string-match-p "ffn_fused" (buffer-string)))
        (should buffer-read-only)))))

(ert-deftest dmir-view-shows-another-level ()
  (dmir-test-in "ffn.dmir"
    (dolist (view '(("generic" . "\"dm.einsum\"(") ("fixed" . "dm.kernel") ("cost" . "minimum")))
      (dmir-view (car view))
      (with-current-buffer
          (dmir-test-eventually "the view" (get-buffer (format "*dmir %s*" (car view))))
        (should (string-search (cdr view) (buffer-string)))
        (should buffer-read-only)
        (should-not (eglot-managed-p))))))

(ert-deftest dmir-panel-opens-the-browser ()
  (dmir-test-in "ffn.dmir"
    (let* (opened (browse-url-browser-function (lambda (url &rest _) (setq opened url))))
      (dolist (kind '("graph" "roofline" "memory" "diff"))
        (setq opened nil)
        (dmir-test-at "dm.einsum")
        (dmir-panel kind)
        (should (string-prefix-p "http://127.0.0.1:" (dmir-test-eventually "the address" opened)))))))

(ert-deftest dmir-toggle-switches-findings ()
  (dmir-test-in "ffn.dmir"
    (flymake-start)
    (dmir-test-eventually "a finding" (flymake-diagnostics))
    (dmir-toggle "lint")
    (dmir-test-eventually "no finding" (progn (flymake-start) (not (flymake-diagnostics))))
    (dmir-toggle "lint")
    (dmir-test-eventually "the finding again" (progn (flymake-start) (flymake-diagnostics)))))

(ert-deftest dmir-indents-by-braces ()
  (with-temp-buffer
    (dmir-mode)
    (insert "func.func @f() {\n%0 = dm.kernel -> f32 {\ndm.yield %c : f32\n}\n^bb1(%a: f32):\nreturn\n}\n")
    (let ((inhibit-message t)) (indent-region (point-min) (point-max)))
    (should (equal (buffer-string)
                   "func.func @f() {\n  %0 = dm.kernel -> f32 {\n    dm.yield %c : f32\n  }\n^bb1(%a: f32):\n  return\n}\n"))))
;;; dmir-test.el ends here
