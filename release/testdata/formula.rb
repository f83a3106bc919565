# Runs the methods of a formula as Homebrew does: the archive for this machine is found, its checksum compared, and install
# copies its files under a prefix.
# usage: ruby formula.rb RELEASE PREFIX
require 'digest'
require 'fileutils'
require 'pathname'
require 'rbconfig'

RELEASE, PREFIX = ARGV

class Pathname
  def install(name)
    FileUtils.mkdir_p(self)
    from, to = name.is_a?(Hash) ? name.first : [name, File.basename(name)]
    FileUtils.cp(from, self + to)
  end
end

class Formula
  class << self
    attr_reader :archive, :sum

    %i[desc homepage license test].each { |name| define_method(name) { |*| } }
    def version(text = nil) = text ? @version = text : @version
    def on_macos = RbConfig::CONFIG['host_os'].include?('darwin') && yield
    def on_linux = RbConfig::CONFIG['host_os'].include?('linux') && yield
    def on_intel = RbConfig::CONFIG['host_cpu'] == 'x86_64' && yield
    def on_arm = %w[arm64 aarch64].include?(RbConfig::CONFIG['host_cpu']) && yield
    def url(address) = @archive = File.basename(address)
    def sha256(sum) = @sum = sum
  end

  def bin = Pathname.new(PREFIX) + 'bin'
  def man1 = Pathname.new(PREFIX) + 'share/man/man1'
  def bash_completion = Pathname.new(PREFIX) + 'etc/bash_completion.d'
  def zsh_completion = Pathname.new(PREFIX) + 'share/zsh/site-functions'
  def fish_completion = Pathname.new(PREFIX) + 'share/fish/vendor_completions.d'
end

load File.join(RELEASE, 'dmir.rb')
archive = File.join(RELEASE, Dmir.archive)
abort 'the checksum differs' unless Digest::SHA256.file(archive).hexdigest == Dmir.sum
FileUtils.mkdir_p("#{PREFIX}/unpacked")
system('tar', '--extract', '--file', archive, '--directory', "#{PREFIX}/unpacked", '--strip-components=1', exception: true)
Dir.chdir("#{PREFIX}/unpacked") { Dmir.new.install }
